"""Bodies that a vendor, or a proxy before it, compresses although it is asked not to."""

import zlib
from collections.abc import Awaitable, Callable

from vendors.http1.errors import BrokenResponse

_MOST_BYTES = 256 * 1024
"""Of one piece: a small body may be swollen without measure."""
_AUTOMATIC = 32 + zlib.MAX_WBITS
"""gzip, or deflate as it ought to be."""


class Inflating:
    """One compressed body. It is inflated as it is read, so that what waits is small."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._inflate = zlib.decompressobj(_AUTOMATIC) if coding in {"gzip", "x-gzip", "deflate"} else None
        self._begun = False

    async def read(self, raw: Callable[[], Awaitable[bytes]]) -> bytes:
        """The next piece, at least a byte; nothing at the end."""
        if self._inflate is None:
            raise BrokenResponse(f"it is encoded as {self._coding[:32]}")
        while True:
            data = self._inflate.unconsumed_tail or await raw()
            if not data:
                if self._begun and not self._inflate.eof:
                    raise BrokenResponse("it ends in the middle of what is compressed")
                return b""
            if piece := self._inflated(data):
                return piece

    def _inflated(self, data: bytes) -> bytes:
        assert self._inflate is not None, "an unknown coding is refused before"
        if not self._begun and self._coding == "deflate" and data[0] & 0x0F != zlib.DEFLATED:
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)  # without its header, as some send it
        self._begun = True
        try:
            return self._inflate.decompress(data, _MOST_BYTES)
        except zlib.error as error:
            raise BrokenResponse("it is compressed otherwise than it tells") from error


def inflating(coding: str) -> Inflating | None:
    """What reads a body of this `Content-Encoding`; none where it stands as it is."""
    told = coding.strip().lower()
    return None if told in {"", "identity"} else Inflating(told)
