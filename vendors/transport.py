"""HTTP and WebSocket calls to vendors: connections, timeouts, repeated calls, errors as `VendorError`."""

import asyncio
import random
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Literal, Protocol, Self, TypeVar

import aiohttp
from pydantic import ValidationError

from streams.push import Sink
from streams.turns import take_turn
from streams.wire.codec import loads
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import REQUEST_ID
from streams.wire.model import Model, faults
from vendors.aiohttp_client import AiohttpClient, ConnectionLost, send_once
from vendors.causes import FAULTS, connect_error, connection_error
from vendors.dns import DnsResolver
from vendors.errors import Garbled, TimedOut, VendorError
from vendors.http1.client import Http1Client, open_http1
from vendors.http1.errors import BadHeader
from vendors.outgoing import Outgoing
from vendors.refusals import refusal

MAX_RETRY_AFTER_S = 2.0
_ERROR_BODY_BYTES = 16 * 1024
_ERROR_BODY_S = 2
_DRAIN_S = 0.25
_CLOSE_S = 0.1
_LARGE_BYTES = 16 * 1024
_JITTER_S = (0.05, 0.25)

Opened = TypeVar("Opened")
M = TypeVar("M", bound=Model)
ClientName = Literal["http1", "aiohttp"]


class Response(Protocol):
    """A response of an HTTP client. Its methods raise that client's own exceptions."""

    status: int

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def content_type(self) -> str: ...

    @property
    def complete(self) -> bool:
        """Whether the complete response has been received. Parts of it may not have been read yet."""

    def read(self) -> Awaitable[bytes]:
        """Return the next part of the body, or `b""` at its end."""

    async def push_to(self, sink: Sink[bytes]) -> bool:
        """Push the body to `sink` as it arrives. Return true if `sink` stopped, false at the end of the body."""

    async def aclose(self) -> None:
        """Close the response. Its connection is closed too unless the response was read to its end."""


class VendorHttp:
    """The HTTP client of the process, shared by all vendor clients."""

    def __init__(self, client: Http1Client | AiohttpClient, socket_session: aiohttp.ClientSession) -> None:
        self._client = client
        self._socket_session = socket_session

    def stream(self, call: Outgoing) -> AbstractAsyncContextManager["Incoming"]:
        """Send a call and return its 2xx response as a context manager. The body is read in the block.

        A call that may be repeated is tried once more if it cannot connect or gets a retryable status (429, 5xx).
        Any other failure raises `VendorError`.
        """
        return Incoming(self, call)

    @asynccontextmanager
    async def websocket(
        self, call: Outgoing, *, heartbeat_s: float | None = None, max_message_bytes: int = 1 << 20
    ) -> AsyncIterator["Socket"]:
        """Open a WebSocket, which is closed at the end of the block. `method` and `body` of the call are ignored.

        The handshake must finish within `connect_s` and is tried once more if the call may be repeated.
        `heartbeat_s` detects a dead connection. Do not set it for a socket that is read with pauses, because pongs
        are only seen while reading.
        """
        dial = partial(self._dial, call, heartbeat_s=heartbeat_s, max_message_bytes=max_message_bytes)
        socket = Socket(call.vendor, await _with_retry(call, dial, dial))
        try:
            yield socket
        finally:
            await socket.close()

    async def request(self, call: Outgoing, *, again: bool = False) -> Response:
        """Send a call once and return its 2xx response, which the caller closes. `again`: this is the retry."""
        try:
            response = await self._client.send(
                call.url,
                method=call.method,
                headers=call.sent_headers,
                body=call.body,
                connect_s=call.connect_s,
                repeatable=call.may_repeat and not again,
                request_id=REQUEST_ID.get(),
            )
        except BadHeader:  # Such as a line feed after a pasted key.
            raise _bad_header(call.vendor) from None
        except FAULTS as error:
            raise _connect_error(call, error) from error
        if response.status < 300:
            return response
        try:
            raw = await _error_body(response.read)
        finally:
            await response.aclose()
        raise refusal(call.vendor, response.status, raw, response.headers)

    async def _dial(
        self, call: Outgoing, *, heartbeat_s: float | None, max_message_bytes: int
    ) -> aiohttp.ClientWebSocketResponse:
        request_id = REQUEST_ID.get()
        try:
            async with asyncio.timeout(call.connect_s):
                return await self._socket_session.ws_connect(
                    call.url,
                    headers={**call.sent_headers, "X-Request-Id": request_id} if request_id else call.sent_headers,
                    heartbeat=heartbeat_s,
                    max_msg_size=max_message_bytes,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
                )
        except _NoSocketError as error:
            raise refusal(call.vendor, *error.args) from None
        except ConnectionLost as error:
            raise _connect_error(call, error.error) from error.error
        except FAULTS as error:
            raise _connect_error(call, error) from error
        except ValueError:
            raise _bad_header(call.vendor) from None


async def _with_retry(
    call: Outgoing, once: Callable[[], Awaitable[Opened]], again: Callable[[], Awaitable[Opened]]
) -> Opened:
    """Return the result of `once`, or that of `again` if the failure is transient and the call may be repeated.

    A vendor receives a call that may be repeated at most three times: over an idle connection, over a new one if
    the idle one failed before the first byte of a response (`Http1Client.send`), and over a new one by this retry.
    Without an idle connection it is twice. Any other call is sent once, over a new connection. The retry of a
    refused call uses a new connection too, so that a load balancer may choose another server. With aiohttp's client
    each of the two attempts sends the call once, over an idle connection or a new one.
    """
    try:
        return await once()
    except VendorError as error:
        if not (call.may_repeat and _is_transient(error)):
            raise
        wait_s = error.retry_after_s
    await asyncio.sleep(random.uniform(*_JITTER_S) if wait_s is None else wait_s)  # noqa: S311 - jitter
    return await again()


def _connect_error(call: Outgoing, error: BaseException) -> VendorError:
    return connect_error(call.vendor, error, url=call.url, connect_s=call.connect_s)


def _bad_header(vendor: str) -> ConfigInvalid:
    return ConfigInvalid(f"{vendor}: its API key or another header contains characters that HTTP does not allow")


class Socket:
    """A vendor's WebSocket.

    After `messages` has ended, `close_code` and `close_reason` are those of the vendor's close frame. The code is
    1006 if the vendor sent none.
    """

    def __init__(self, vendor: str, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.vendor = vendor
        self.close_code = 1006
        self.close_reason = ""
        self._socket = socket

    async def send(self, message: str | bytes) -> None:
        try:
            if isinstance(message, str):
                await self._socket.send_str(message)
            else:
                await self._socket.send_bytes(message)
        except FAULTS as error:
            raise connection_error(self.vendor, error) from error

    async def messages(self) -> AsyncGenerator[str | bytes]:
        """Yield the vendor's messages until the socket is closed by either side."""
        try:
            while True:
                message = await self._socket.receive()
                if message.type in {aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY}:
                    yield message.data
                elif message.type is aiohttp.WSMsgType.CLOSE:
                    self.close_code, self.close_reason = message.data, message.extra or ""
                    return
                elif message.type is not aiohttp.WSMsgType.ERROR:
                    return
                elif isinstance(message.data, aiohttp.WebSocketError):
                    raise Garbled(self.vendor, "sent a message that is too large or invalid") from None
                else:
                    raise message.data
        except FAULTS as error:
            raise connection_error(self.vendor, error) from error

    async def close(self) -> None:
        """Close the socket, waiting only briefly for the vendor. A running `messages` iterator ends."""
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(_CLOSE_S * 2):
                await self._socket.close()


class Incoming:
    """A vendor's response, as a context manager."""

    __slots__ = ("_call", "_http", "_response", "closed", "vendor")

    def __init__(self, http: VendorHttp, call: Outgoing) -> None:
        self.vendor = call.vendor
        self.closed = False
        """Whether the block has ended. Nothing may be read after that."""
        self._http = http
        self._call = call

    async def __aenter__(self) -> Self:
        call, request = self._call, self._http.request
        self._response: Response = await _with_retry(
            call, partial(request, call), partial(request, call, again=True)
        )
        del self._call  # The request body may be large.
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def content_type(self) -> str:
        return self._response.content_type

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the body as it arrives. Raise `Garbled` or `Unreachable` if it is cut off."""
        while piece := await self.read():
            yield piece

    async def read(self) -> bytes:
        """Return the next part of the body, or `b""` at its end."""
        try:
            piece = await self._response.read()
        except FAULTS as error:
            raise connection_error(self.vendor, error) from error
        if len(piece) > _LARGE_BYTES:
            await take_turn()
        return piece

    async def push_to(self, sink: Sink[bytes]) -> bool:
        """Push the body to `sink` as it arrives. Return true if `sink` stopped, false at the end of the body."""
        try:
            return await self._response.push_to(sink)
        except FAULTS as error:
            raise connection_error(self.vendor, error) from error

    async def aclose(self) -> None:
        """Close the response. Its connection is closed too unless the response was read to its end."""
        self.closed = True
        await self._response.aclose()

    async def drain(self) -> None:
        """After the vendor's end mark, wait briefly for the end of the HTTP body, so the connection is reused."""
        if self._response.complete:
            return
        with suppress(*FAULTS):
            async with asyncio.timeout(_DRAIN_S):
                while await self._response.read():
                    pass

    async def json(self, limit_bytes: int = 8 * 1024 * 1024) -> Any:
        raw = bytearray()
        async with aclosing(self.pieces()) as pieces:
            async for piece in pieces:
                raw += piece
                if len(raw) > limit_bytes:
                    raise Garbled(self.vendor, f"sent a response of more than {limit_bytes} bytes")
        try:
            return loads(raw)
        except ValueError:
            raise Garbled(self.vendor, "sent invalid JSON") from None

    async def value(self, model: type[M]) -> M:
        """Return the JSON body as a model. Raise `Garbled` if it does not fit."""
        try:
            return model.model_validate(await self.json())
        except ValidationError as error:
            path, problem = next(faults(error))
            raise Garbled(self.vendor, f"sent a response of an unknown form: {path or 'body'} {problem}") from None


async def _error_body(read: Callable[[], Awaitable[bytes]]) -> bytes:
    """Read as much of the body as arrives in time. It may be incomplete, because the status matters most."""
    raw = bytearray()
    with suppress(*FAULTS):
        async with asyncio.timeout(_ERROR_BODY_S):
            while len(raw) < _ERROR_BODY_BYTES and (piece := await read()):
                raw += piece
    return bytes(raw)


def _is_transient(error: BaseException) -> bool:
    return (
        isinstance(error, VendorError)
        and error.retryable
        and not isinstance(error, TimedOut)
        and (error.retry_after_s or 0) <= MAX_RETRY_AFTER_S
    )


class _NoSocketError(Exception):
    """A handshake was refused. Carries the status, the body and the headers of the response."""


async def _socket_or_error(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Read the error of a refused handshake. Do not follow redirects, which would send the key to another host."""
    response = await send_once(request, send)
    if response.status == HTTPStatus.SWITCHING_PROTOCOLS:
        return response
    try:
        raise _NoSocketError(response.status, await _error_body(response.content.readany), response.headers)
    finally:
        response.close()


@asynccontextmanager
async def open_vendor_http(
    *,
    client: ClientName = "http1",
    idle_s: float = 60,
    dns_servers: Sequence[tuple[str, int]] = (),
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[VendorHttp]:
    """Open the HTTP client of the process. It ignores proxies of the environment and cookies.

    `client` selects the HTTP client; WebSockets always use aiohttp. Idle connections are kept for `idle_s`.
    Host names are resolved by `dns_servers` if given, else by the system. `tls` replaces the system's default TLS
    context.
    """
    resolver = DnsResolver(dns_servers) if dns_servers else aiohttp.ThreadedResolver()
    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=idle_s, ttl_dns_cache=60, resolver=resolver, ssl=tls or True
    )
    cookie_jar = aiohttp.DummyCookieJar()
    async with (
        open_http1(resolver, idle_s=idle_s, tls=tls) as http1,
        aiohttp.ClientSession(
            connector=connector,
            cookie_jar=cookie_jar,
            trust_env=False,
            auto_decompress=True,
            read_bufsize=256 * 1024,
            middlewares=(send_once,),
        ) as session,
        aiohttp.ClientSession(
            connector=connector,
            connector_owner=False,
            cookie_jar=cookie_jar,
            trust_env=False,
            middlewares=(_socket_or_error,),
        ) as socket_session,
    ):
        yield VendorHttp(http1 if client == "http1" else AiohttpClient(session), socket_session)
