"""aiohttp's client in the place of our own: what `PARLEY_VENDOR_CLIENT=aiohttp` chooses."""

from collections.abc import AsyncIterable, Mapping
from io import BytesIO

import aiohttp
from multidict import CIMultiDictProxy

from streams.push import Sink
from streams.wire.errors import ServiceError
from vendors.http1.errors import BadHeader

_LARGE_BYTES = 1024 * 1024


class Lost(Exception):
    """Carries `error` past aiohttp, which would otherwise send an idempotent request a second time."""

    def __init__(self, error: aiohttp.ClientError) -> None:
        super().__init__(str(error))
        self.error = error


async def sent_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Middleware of sessions: a connection that dies before its answer raises `Lost`.

    aiohttp repeats GET and the like on any such failure, even where the connection was new, and has no setting
    against it. Whether a call is repeated is decided in `vendors/transport.py`.
    """
    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise Lost(error) from error


class AiohttpAnswer:
    """An answer of aiohttp's."""

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
    def whole(self) -> bool:
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

    async def leave(self) -> None:
        self._response.close()


class AiohttpClient:
    """Takes and gives what `Http1Client` does."""

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
    ) -> AiohttpAnswer:
        """As `Http1Client.send`; it never sends a request twice by itself, whatever is `repeatable`."""
        try:
            response = await self._session.request(
                method,
                url,
                data=_sendable(body),
                headers={**headers, "X-Request-Id": request_id} if request_id else headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_s, connect=connect_s),
            )
        except (Lost, aiohttp.ClientConnectionError) as raised:
            error = raised.error if isinstance(raised, Lost) else raised
            if isinstance(error.__cause__, ServiceError):  # of who makes the body
                raise error.__cause__ from None
            raise error from None
        except ValueError as error:
            if isinstance(error, aiohttp.ClientError):
                raise
            raise BadHeader(str(error)) from None
        return AiohttpAnswer(response)


def _sendable(body: bytes | AsyncIterable[bytes] | None) -> object:
    """Large bytes as a file, which is sent piece by piece."""
    return BytesIO(body) if isinstance(body, bytes) and len(body) > _LARGE_BYTES else body
