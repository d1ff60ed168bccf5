"""Public documents of vendors, such as keys, each fetched once for all that need it at the same time."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Generic, TypeVar

from streams.kept_errors import stripped
from streams.wire.errors import ServiceError
from vendors.errors import Garbled, TimedOut
from vendors.http.client import open_vendor_http
from vendors.http.outgoing import ReadCall
from vendors.http.transport import VendorHttp

FETCH_S = 5
T = TypeVar("T")


class Fetched(Generic[T]):
    """A document as it was last fetched."""

    def __init__(self) -> None:
        self.value: T | None = None
        self.error: ServiceError | None = None
        """Why the last fetch failed. It has no traceback. Raise a copy (`copy_of`)."""
        self._attempts = 0
        self._fetching = asyncio.Lock()

    @property
    def under_way(self) -> bool:
        return self._fetching.locked()

    async def fetch(self, fetch: Callable[[], Awaitable[T]]) -> None:
        """Fetch the document, or wait for the fetch that is under way. A failure sets `error` and keeps `value`."""
        attempts = self._attempts
        async with self._fetching:
            if self._attempts != attempts:
                return
            try:
                self.value, self.error = await fetch(), None
            except ServiceError as error:
                self.error = stripped(error)
            self._attempts += 1


async def download(
    http: VendorHttp, vendor: str, url: str, *, limit_bytes: int, authorities: str = ""
) -> tuple[bytes, Mapping[str, str]]:
    """Return the body and the headers of a document. Redirects are not followed. Raise `VendorError`.

    `authorities`, in PEM format, replace the system's in the check of the server's certificate.
    """
    if authorities:
        tls = ssl.create_default_context(cadata=authorities)
        async with open_vendor_http(tls=tls, idle_s=0) as own_http:
            return await download(own_http, vendor, url, limit_bytes=limit_bytes)
    raw = bytearray()
    try:
        async with asyncio.timeout(FETCH_S), http.stream(ReadCall(vendor, url)) as response:
            headers = response.headers
            async with aclosing(response.pieces()) as pieces:
                async for piece in pieces:
                    raw += piece
                    if len(raw) > limit_bytes:
                        raise Garbled(vendor, f"sent a document of more than {limit_bytes} bytes")
    except TimeoutError:
        raise TimedOut(vendor, f"did not answer within {FETCH_S} s", retryable=True) from None
    return bytes(raw), headers
