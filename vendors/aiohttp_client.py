"""An adapter with the interface of `Http1Client` over aiohttp's client (`PARLEY_VENDOR_CLIENT=aiohttp`)."""

from collections.abc import AsyncIterable, Mapping
from io import BytesIO

import aiohttp
from multidict import CIMultiDictProxy

from streams.push import Sink
from streams.wire.errors import ServiceError
from vendors.http1.errors import BadHeader

_LARGE_BYTES = 1024 * 1024


class ConnectionLost(Exception):
    """Wraps a connection error so that aiohttp does not recognize it and send an idempotent request again."""

    def __init__(self, error: aiohttp.ClientError) -> None:
        super().__init__(str(error))
        self.error = error


async def send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Session middleware: raise `ConnectionLost` when the connection fails before the response.

    aiohttp repeats GET and other idempotent requests after such a failure, even over a new connection, and has no
    setting to turn this off. `vendors/retries.py` decides whether a call is repeated.
    """
    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise ConnectionLost(error) from error


class AiohttpResponse:
    """An aiohttp response with the interface of `transport.Response`."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        return self._response.headers

    @property
    def content_type(self) -> str:
        return self._response.content_type

    @property
    def complete(self) -> bool:
        return self._response.content.is_eof()

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except aiohttp.ClientConnectionError as error:
            if isinstance(error.__cause__, ServiceError):
                raise error.__cause__ from None
            raise

    async def push_to(self, sink: Sink[bytes]) -> bool:
        while piece := await self.read():
            if not sink(piece):
                return True
        return False

    def close(self) -> None:
        self._response.close()

    async def aclose(self) -> None:
        self._response.close()


class AiohttpClient:
    """Has the interface of `Http1Client`."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def send(
        self,
        url: str,
        *,
        method: str,
        headers: Mapping[str, str],
        body: bytes | AsyncIterable[bytes] | None,
        connect_s: float,
        repeatable: bool,
        request_id: str = "",
    ) -> AiohttpResponse:
        """Like `Http1Client.send`, but never send a request twice, even if it is `repeatable`."""
        try:
            response = await self._session.request(
                method,
                url,
                data=_sendable(body),
                headers={**headers, "X-Request-Id": request_id} if request_id else headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_s, connect=connect_s),
            )
        except (ConnectionLost, aiohttp.ClientConnectionError) as raised:
            error = raised.error if isinstance(raised, ConnectionLost) else raised
            if isinstance(error.__cause__, ServiceError):  # Raised by the iterator of the request body.
                raise error.__cause__ from None
            raise error from None
        except ValueError as error:
            if isinstance(error, aiohttp.ClientError):
                raise
            raise BadHeader(str(error)) from None
        return AiohttpResponse(response)


def _sendable(body: bytes | AsyncIterable[bytes] | None) -> object:
    """Return a large body as a file, because aiohttp sends files in pieces."""
    return BytesIO(body) if isinstance(body, bytes) and len(body) > _LARGE_BYTES else body
