"""Downloads of the files that a host has made, from the addresses in its answers."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from urllib.parse import urlsplit

from vendors.errors import Garbled
from vendors.http.outgoing import ReadCall
from vendors.http.transport import VendorHttp


@asynccontextmanager
async def download(
    http: VendorHttp, url: str, *, platform: str, base_url: str, max_bytes: int
) -> AsyncIterator[AsyncGenerator[bytes]]:
    """Open a file and iterate over its bytes. Raises `VendorError`, including for more than `max_bytes`.

    An answer may name any host. Therefore the host's address must be public, unless it is the host of the account's
    `base_url`, which an operator has set.
    """
    call = ReadCall(platform, url, public_only=_origin(url) != _origin(base_url))
    async with (
        http.stream(call) as response,
        aclosing(_bounded(response.pieces(), platform=platform, max_bytes=max_bytes)) as pieces,
    ):
        yield pieces


async def _bounded(pieces: AsyncGenerator[bytes], *, platform: str, max_bytes: int) -> AsyncGenerator[bytes]:
    size = 0
    async with aclosing(pieces):
        async for piece in pieces:
            size += len(piece)
            if size > max_bytes:
                raise Garbled(platform, f"sent a file of more than {max_bytes} bytes")
            yield piece


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
