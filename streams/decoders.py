"""Incremental decoders for a stream's input. The result does not depend on how the bytes are split."""

import binascii
import codecs
import re
import string

from streams.wire.errors import InvalidParameter

_SPACES = b" \t\r\n\f\v"
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_ALPHABET = (string.ascii_letters + string.digits + "+/=").encode()
_PADDED = re.compile(rb"(?:(?:[^=]{4})*+(?:[^=]{2}==?|[^=]{3}=))*+")
"""Base64 that ends with a padded group, and may contain others."""


class Utf8Decoder:
    """Decode UTF-8 that may be split inside a character. Rejects U+0000, which PostgreSQL's `text` cannot store."""

    __slots__ = ("_incomplete",)

    def __init__(self) -> None:
        self._incomplete = b""
        """The first bytes of a character whose remaining bytes have not arrived."""

    def feed(self, piece: bytes, *, last: bool = False) -> str:
        piece = self._incomplete + piece
        try:
            text, used = codecs.utf_8_decode(piece, "strict", last)
        except UnicodeDecodeError:
            raise InvalidParameter("text is not valid UTF-8") from None
        if "\0" in text:
            raise InvalidParameter("text must not contain the character U+0000")
        self._incomplete = piece[used:]
        return text

    def finish(self) -> str:
        return self.feed(b"", last=True)


class Base64Decoder:
    """Decode base64 that may be split inside a group of four characters.

    Accepts the standard and the URL-safe alphabet. Padding is optional, and may also end each chunk.
    """

    def __init__(self) -> None:
        self._group = b""
        self._padding_due = 0

    @property
    def unaligned(self) -> bool:
        """Whether the input so far ends with an unpadded group of 2 or 3 characters."""
        return len(self._group) > 1

    def feed(self, piece: bytes) -> bytes:
        piece = piece.translate(_TO_STANDARD, _SPACES)
        if piece.translate(None, _ALPHABET):
            raise InvalidParameter("audio is not valid base64")
        while self._padding_due and piece[:1] == b"=":
            self._padding_due -= 1
            piece = piece[1:]
        if not piece:
            return b""
        piece, self._group = self._group + piece, b""
        end = piece.rfind(b"=") + 1
        decoded = self._padded(piece[:end]) if end else b""
        return decoded + self._characters(piece[end:]) if end < len(piece) else decoded

    def finish(self) -> bytes:
        if len(self._group) == 1:
            raise InvalidParameter("audio is not valid base64 (chunks must contain multiples of 3 bytes)")
        return self._close_group()

    def _characters(self, run: bytes) -> bytes:
        self._padding_due = 0
        end = len(run) & ~3
        self._group = run[end:]
        return binascii.a2b_base64(run[:end])

    def _padded(self, groups: bytes) -> bytes:
        """Decode groups of which the last one is padded. A padding of two characters may be cut after the first."""
        if _PADDED.fullmatch(groups) is None:
            raise InvalidParameter("audio is not valid base64")
        last_run = len(groups) - 1 - (groups.rfind(b"=", 0, -1) + 1)
        self._padding_due = int(last_run % 4 == 2)
        # `a2b_base64` stops at a complete padding and accepts excess padding.
        runs = groups.replace(b"==", b"=").replace(b"=", b"==\n")
        return b"".join(map(binascii.a2b_base64, runs.split(b"\n")))

    def _close_group(self) -> bytes:
        group, self._group = self._group, b""
        return binascii.a2b_base64(group + b"=" * (-len(group) % 4))
