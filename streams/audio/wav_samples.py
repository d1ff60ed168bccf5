"""Separates the samples of a WAV file from what is before and after them, while the file arrives."""

import struct

from streams.audio.audio import CHUNK_BYTES, MAX_FMT_BYTES, RIFF_BYTES, WavFormat, wav_format


class WavSamples:
    """Takes a file in pieces. `format` is known once the header is complete."""

    def __init__(self) -> None:
        self.format: WavFormat | None = None
        self._held = bytearray()
        self._offset = 0
        """How many bytes came before those that are held."""
        self._skip = 0
        """How many bytes of another chunk are still to come."""
        self._fmt: bytes | None = None
        self._left: int | None = None
        """Remaining bytes of samples according to the header. Text and pictures may follow them."""

    def feed(self, piece: bytes) -> bytes:
        """Return the samples in `piece`. Raises `ValueError` if the header is not that of a WAV file."""
        if self.format is None:
            piece = self._read_header(piece)
        if self._left is not None:
            piece = piece[: self._left]
            self._left -= len(piece)
        return piece

    def _read_header(self, piece: bytes) -> bytes:
        """Return what follows the header, if that is complete."""
        self._held += piece
        while self._read_chunk():
            pass
        return self._take(len(self._held)) if self.format is not None else b""

    def _read_chunk(self) -> bool:
        """Read what is next in the header, and return whether there may be more of it."""
        if self._skip:
            return bool(self._take(min(self._skip, len(self._held)), skipped=True))
        if not self._offset:
            return self._read_riff()
        if len(self._held) < CHUNK_BYTES:
            return False
        name, size = struct.unpack_from("<4sI", self._held)
        if name == b"data":
            self._take(CHUNK_BYTES)
            self.format = wav_format(self._fmt, data_offset=self._offset, data_bytes=size)
            self._left = self.format.data_bytes
            return False
        if name == b"fmt " and size <= MAX_FMT_BYTES:
            if len(self._held) < CHUNK_BYTES + size:
                return False
            self._fmt = bytes(self._held[CHUNK_BYTES : CHUNK_BYTES + size])
        self._take(CHUNK_BYTES)
        self._skip = size + size % 2
        return True

    def _read_riff(self) -> bool:
        if len(self._held) < RIFF_BYTES:
            return False
        riff = self._take(RIFF_BYTES)
        if riff[:4] != b"RIFF" or riff[8:] != b"WAVE":
            raise ValueError("not a WAV file")
        return True

    def _take(self, size: int, *, skipped: bool = False) -> bytes:
        taken = bytes(self._held[:size])
        del self._held[:size]
        self._offset += size
        self._skip -= size if skipped else 0
        return taken
