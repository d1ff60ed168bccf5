"""Decompresses bodies that a vendor or a proxy compresses although the request asks for `identity`."""

import zlib
from collections.abc import Awaitable, Callable

from vendors.http.http1.errors import BrokenResponse

_MAX_PIECE_BYTES = 256 * 1024
"""The maximum size of one decompressed piece, because a small body may expand without bound."""
_AUTOMATIC = 32 + zlib.MAX_WBITS
"""zlib detects gzip and zlib headers."""


class Decompressor:
    """A compressed body. It is decompressed as it is read, so that only compressed data is buffered."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._zlib = zlib.decompressobj(_AUTOMATIC) if coding in {"gzip", "x-gzip", "deflate"} else None
        self._started = False

    async def read(self, raw: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the next piece, or `b""` at the end. `raw` reads compressed data."""
        if self._zlib is None:
            raise BrokenResponse(f"unsupported content encoding {self._coding[:32]}")
        while True:
            data = self._zlib.unconsumed_tail or await raw()
            if not data:
                if self._started and not self._zlib.eof:
                    raise BrokenResponse("the compressed body is truncated")
                return b""
            if piece := self._decompress(data):
                return piece

    def _decompress(self, data: bytes) -> bytes:
        assert self._zlib is not None, "`read` rejects an unknown coding first"
        if not self._started and self._coding == "deflate" and data[0] & 0x0F != zlib.DEFLATED:
            # Some servers send raw deflate data without the zlib header.
            self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)
        self._started = True
        try:
            return self._zlib.decompress(data, _MAX_PIECE_BYTES)
        except zlib.error as error:
            raise BrokenResponse("the body does not match its content encoding") from error


def decompressor(coding: str) -> Decompressor | None:
    """Return the decompressor for this `Content-Encoding`, or `None` if the body is not compressed."""
    name = coding.strip().lower()
    return None if name in {"", "identity"} else Decompressor(name)
