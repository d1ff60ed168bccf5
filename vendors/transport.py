"""How vendors over HTTP are reached: one session, timeouts, one retry, and their faults made ours."""

import asyncio
import random
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Literal, Protocol, Self, TypeVar

import aiohttp

from streams.push import Sink
from streams.wire.codec import loads
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import REQUEST_ID
from vendors.aiohttp_client import AiohttpClient, Lost, sent_once
from vendors.causes import FAULTS, broken_off, not_reached
from vendors.dns import DnsResolver
from vendors.errors import Garbled, TimedOut, VendorError
from vendors.http1.client import Http1Client, open_http1
from vendors.http1.errors import BadHeader
from vendors.refusals import refusal

MAX_RETRY_AFTER_S = 2.0
_ERROR_BODY_BYTES = 16 * 1024
_ERROR_BODY_S = 2
_REST_S = 0.25
_CLOSE_S = 0.1
_JITTER_S = (0.05, 0.25)

Opened = TypeVar("Opened")
ClientName = Literal["http1", "aiohttp"]


@dataclass(slots=True)
class Outgoing:
    """One call to a vendor. `body` is whole bytes or a stream of them, which is not sent twice.

    A stream may still be sent while its answer is read; it is its maker who closes it. What breaks it is raised
    by who reads the answer.
    """

    vendor: str
    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterable[bytes] | None = None
    connect_s: float = 5
    repeatable: bool = True


class Response(Protocol):
    """What a client gives; its methods raise that client's own errors."""

    status: int

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def content_type(self) -> str: ...

    @property
    def whole(self) -> bool:
        """All of it has come, and may be unread."""

    def read(self) -> Awaitable[bytes]:
        """At least a byte; nothing at the end."""

    async def push_to(self, sink: Sink[bytes]) -> bool:
        """Give `sink` what comes as it comes. Whether `sink` wants no more; else that was the end."""

    async def leave(self) -> None:
        """Close it."""


class VendorHttp:
    """The one HTTP client of the process."""

    def __init__(self, client: Http1Client | AiohttpClient, socket_session: aiohttp.ClientSession) -> None:
        self._client = client
        self._socket_session = socket_session

    def stream(self, call: Outgoing) -> AbstractAsyncContextManager["Incoming"]:
        """A 2xx answer, its body still to come; the connection is closed with the block unless it is read out.

        A refused connection, 429 and 5xx are tried once more; then, and for any other status, `VendorError`.
        """
        return Incoming(self, call)

    @asynccontextmanager
    async def websocket(
        self, call: Outgoing, *, heartbeat_s: float | None = None, max_message_bytes: int = 1 << 20
    ) -> AsyncIterator["Socket"]:
        """A WebSocket that the vendor accepted (`method` and `body` mean nothing here), closed with the block.

        Its handshake counts as connecting and is tried once more like any call. A heartbeat tells a dead line
        from a silent one; not for what is read with pauses, for who does not read does not see the answer either.
        """
        dial = partial(self._dial, call, heartbeat_s=heartbeat_s, max_message_bytes=max_message_bytes)
        socket = Socket(call.vendor, await _tried(call, dial, dial))
        try:
            yield socket
        finally:
            await socket.close()

    async def answered(self, call: Outgoing, *, again: bool = False) -> Response:
        """A 2xx answer, which the caller closes with `leave`. `again`: the call is a retry."""
        try:
            answer = await self._client.send(
                call.url,
                method=call.method,
                headers=call.headers,
                body=call.body,
                connect_s=call.connect_s,
                repeatable=_repeatable(call) and not again,
                request_id=REQUEST_ID.get(),
            )
        except BadHeader:  # a line feed behind a pasted key
            raise _unsendable(call.vendor) from None
        except FAULTS as error:
            raise _not_reached(call, error) from error
        if answer.status < 300:
            return answer
        try:
            raw = await _error_body(answer.read)
        finally:
            await answer.leave()
        raise refusal(call.vendor, answer.status, raw, answer.headers)

    async def _dial(
        self, call: Outgoing, *, heartbeat_s: float | None, max_message_bytes: int
    ) -> aiohttp.ClientWebSocketResponse:
        request_id = REQUEST_ID.get()
        try:
            async with asyncio.timeout(call.connect_s):
                return await self._socket_session.ws_connect(
                    call.url,
                    headers={**call.headers, "X-Request-Id": request_id} if request_id else call.headers,
                    heartbeat=heartbeat_s,
                    max_msg_size=max_message_bytes,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
                )
        except _NoSocketError as error:
            raise refusal(call.vendor, *error.args) from None
        except Lost as lost:
            raise _not_reached(call, lost.error) from lost.error
        except FAULTS as error:
            raise _not_reached(call, error) from error
        except ValueError:
            raise _unsendable(call.vendor) from None


async def _tried(
    call: Outgoing, once: Callable[[], Awaitable[Opened]], again: Callable[[], Awaitable[Opened]]
) -> Opened:
    """The result of `once`, or of `again` where the failure may pass and the call may be repeated.

    A vendor receives a repeatable call at most three times: over a kept connection, over a new one when the kept
    connection died before a byte of the answer (`Http1Client.send`), and on a new one by this retry. Without a kept
    connection it is two times. Any other call is sent once, over a new connection. The retry of a refused call
    opens a new connection too, so that a load balancer may choose another server. aiohttp's client sends each of
    the two tries once, over a kept connection or a new one.
    """
    try:
        return await once()
    except VendorError as error:
        if not (_repeatable(call) and _worth_a_retry(error)):
            raise
        wait_s = error.retry_after_s
    await asyncio.sleep(random.uniform(*_JITTER_S) if wait_s is None else wait_s)  # noqa: S311 - jitter
    return await again()


def _repeatable(call: Outgoing) -> bool:
    return call.repeatable and (call.body is None or isinstance(call.body, bytes))


def _not_reached(call: Outgoing, error: BaseException) -> VendorError:
    return not_reached(call.vendor, error, url=call.url, connect_s=call.connect_s)


def _unsendable(vendor: str) -> ConfigInvalid:
    return ConfigInvalid(f"{vendor}: its key or another header holds what HTTP cannot send")


class Socket:
    """A vendor's WebSocket: messages in both directions.

    Once `messages` has ended, `close_code` and `close_reason` tell how the vendor closed it; 1006: it did not.
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
            raise broken_off(self.vendor, error) from error

    async def messages(self) -> AsyncGenerator[str | bytes]:
        """What the vendor sends until the socket is closed, by whom and why ever."""
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
                    raise Garbled(self.vendor, "sent a message that is too large or no WebSocket's") from None
                else:
                    raise message.data
        except FAULTS as error:
            raise broken_off(self.vendor, error) from error

    async def close(self) -> None:
        """Tell the vendor and wait for its answer for a moment only; whoever reads `messages` meets their end."""
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(_CLOSE_S * 2):
                await self._socket.close()


class Incoming:
    """A vendor's answer, for a block."""

    __slots__ = ("_answer", "_call", "_http", "left", "vendor")

    def __init__(self, http: VendorHttp, call: Outgoing) -> None:
        self.vendor = call.vendor
        self.left = False
        """Nobody may read on: the block that it was for is over."""
        self._http = http
        self._call = call

    async def __aenter__(self) -> Self:
        call, answered = self._call, self._http.answered
        self._answer: Response = await _tried(call, partial(answered, call), partial(answered, call, again=True))
        del self._call  # what was asked may be large
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    @property
    def content_type(self) -> str:
        return self._answer.content_type

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The body as it comes. A body that is cut is `Garbled` or `Unreachable`, never an end."""
        while piece := await self.read():
            yield piece

    async def read(self) -> bytes:
        """A piece of the body, at least a byte; nothing at its end."""
        try:
            return await self._answer.read()
        except FAULTS as error:
            raise broken_off(self.vendor, error) from error

    async def push_to(self, sink: Sink[bytes]) -> bool:
        """Give `sink` the body as it comes. Whether `sink` wants no more; else that was its end."""
        try:
            return await self._answer.push_to(sink)
        except FAULTS as error:
            raise broken_off(self.vendor, error) from error

    async def leave(self) -> None:
        """Nobody reads on; unless it was read out its connection is closed."""
        self.left = True
        await self._answer.leave()

    async def rest(self) -> None:
        """Behind the end mark of an answer: let HTTP end too, briefly, so that the connection is used again."""
        if self._answer.whole:
            return
        with suppress(*FAULTS):
            async with asyncio.timeout(_REST_S):
                while await self._answer.read():
                    pass

    async def json(self, limit_bytes: int = 8 * 1024 * 1024) -> Any:
        raw = bytearray()
        async with aclosing(self.pieces()) as pieces:
            async for piece in pieces:
                raw += piece
                if len(raw) > limit_bytes:
                    raise Garbled(self.vendor, "answered with more than is allowed")
        try:
            return loads(raw)
        except ValueError:
            raise Garbled(self.vendor, "answered with broken JSON") from None


async def _error_body(read: Callable[[], Awaitable[bytes]]) -> bytes:
    """As much of it as comes in time: the status tells more than how the body ends."""
    raw = bytearray()
    with suppress(*FAULTS):
        async with asyncio.timeout(_ERROR_BODY_S):
            while len(raw) < _ERROR_BODY_BYTES and (piece := await read()):
                raw += piece
    return bytes(raw)


def _worth_a_retry(error: BaseException) -> bool:
    return (
        isinstance(error, VendorError)
        and error.retryable
        and not isinstance(error, TimedOut)
        and (error.retry_after_s or 0) <= MAX_RETRY_AFTER_S
    )


class _NoSocketError(Exception):
    """Status, body and headers of an answer to a handshake."""


async def _socket_or_error(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Read why a handshake was refused; nor follow it elsewhere, which would take the account's key along."""
    response = await sent_once(request, send)
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
    """The client of the process: no proxy from the environment, no cookies, idle connections kept for `idle_s`.

    `client` reads answers; WebSockets are aiohttp's in any case. Names are looked up at `dns_servers` where there
    are any, else by the system. `tls`: in place of the authorities that the system trusts.
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
            middlewares=(sent_once,),
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
