"""How vendors over HTTP are reached: one session, timeouts, one retry, and their faults made ours."""

import asyncio
import math
import random
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from io import BytesIO
from typing import Any, TypeVar

import aiohttp
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from streams.wire.codec import loads, now_ms
from streams.wire.errors import ConfigInvalid, ServiceError
from streams.wire.ids import REQUEST_ID
from vendors.errors import Garbled, Refused, TimedOut, Unreachable, VendorError

MAX_RETRY_AFTER_S = 2.0
RETRYABLE_STATUS = frozenset({408, 429, 500, 502, 503, 504, 529})
_ERROR_BODY_BYTES = 16 * 1024
_LARGE_BYTES = 1024 * 1024
_ERROR_BODY_S = 2
_REST_S = 0.25
_CLOSE_S = 0.1

Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One call to a vendor. `body` is whole bytes or a stream of them (then it is not sent twice)."""

    vendor: str
    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    connect_s: float = 5
    repeatable: bool = True


class VendorHttp:
    """The one HTTP client of the process."""

    def __init__(self, session: aiohttp.ClientSession, socket_session: aiohttp.ClientSession) -> None:
        self._session = session
        self._socket_session = socket_session

    @asynccontextmanager
    async def stream(self, call: Outgoing) -> AsyncIterator["Incoming"]:
        """A 2xx answer, its body still to come; the connection is closed with the block unless it is read out.

        A refused connection, 429 and 5xx are tried once more; then, and for any other status, `VendorError`.
        """
        response = await self._tried(call, self._send)
        try:
            yield Incoming(call.vendor, response)
        finally:
            response.close()

    @asynccontextmanager
    async def websocket(
        self, call: Outgoing, *, heartbeat_s: float | None = None, max_message_bytes: int = 1 << 20
    ) -> AsyncIterator["Socket"]:
        """A WebSocket that the vendor accepted (`method` and `body` mean nothing here), closed with the block.

        Its handshake counts as connecting and is tried once more like any call. A heartbeat tells a dead line
        from a silent one; not for what is read with pauses, for who does not read does not see the answer either.
        """
        dial = partial(self._dial, heartbeat_s=heartbeat_s, max_message_bytes=max_message_bytes)
        socket = Socket(call.vendor, await self._tried(call, dial))
        try:
            yield socket
        finally:
            await socket.close()

    async def _tried(self, call: Outgoing, once: Callable[[Outgoing], Awaitable[Opened]]) -> Opened:
        tries = AsyncRetrying(
            stop=stop_after_attempt(2 if call.repeatable else 1),
            retry=retry_if_exception(_worth_a_retry),
            wait=_wait,
            sleep=asyncio.sleep,
            reraise=True,
        )
        opened: Opened = await tries(once, call)
        return opened

    async def _send(self, call: Outgoing) -> aiohttp.ClientResponse:
        try:
            with map_errors(call.vendor):
                response = await self._session.request(
                    call.method,
                    call.url,
                    data=_sendable(call.body),
                    headers=_headers(call),
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=call.connect_s, connect=call.connect_s),
                )
        except ValueError:  # a line feed behind a pasted key
            raise ConfigInvalid(f"{call.vendor}: its key or another header holds what HTTP cannot send") from None
        if response.status < 300:
            return response
        try:
            raw = await _error_body(response)
        finally:
            response.close()
        raise refusal(call.vendor, response.status, raw, response.headers)

    async def _dial(
        self, call: Outgoing, *, heartbeat_s: float | None, max_message_bytes: int
    ) -> aiohttp.ClientWebSocketResponse:
        try:
            with map_errors(call.vendor):
                async with asyncio.timeout(call.connect_s):
                    return await self._socket_session.ws_connect(
                        call.url,
                        headers=_headers(call),
                        heartbeat=heartbeat_s,
                        max_msg_size=max_message_bytes,
                        timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
                    )
        except _NoSocketError as error:
            raise refusal(call.vendor, *error.args) from None
        except ValueError:
            raise ConfigInvalid(f"{call.vendor}: its key or another header holds what HTTP cannot send") from None


def _headers(call: Outgoing) -> dict[str, str]:
    """Those of the call, and the id of the request that it is made for."""
    request_id = REQUEST_ID.get()
    return {**call.headers, "X-Request-Id": request_id} if request_id else dict(call.headers)


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
        with map_errors(self.vendor):
            if isinstance(message, str):
                await self._socket.send_str(message)
            else:
                await self._socket.send_bytes(message)

    async def messages(self) -> AsyncGenerator[str | bytes]:
        """What the vendor sends until the socket is closed, by whom and why ever."""
        with map_errors(self.vendor):
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

    async def close(self) -> None:
        """Tell the vendor and wait for its answer for a moment only; whoever reads `messages` meets their end."""
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(_CLOSE_S * 2):
                await self._socket.close()


class Incoming:
    """A vendor's answer."""

    def __init__(self, vendor: str, response: aiohttp.ClientResponse) -> None:
        self.vendor = vendor
        self.headers = response.headers
        self._response = response

    @property
    def content_type(self) -> str:
        return self._response.content_type

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The body as it comes. A body that is cut is `Garbled` or `Unreachable`, never an end."""
        with map_errors(self.vendor):
            async for piece in self._response.content.iter_any():
                yield piece

    async def rest(self) -> None:
        """Behind the end mark of an answer: let HTTP end too, briefly, so that the connection is used again."""
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(_REST_S):
                while await self._response.content.readany():
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


def _sendable(body: Any) -> Any:
    """Large bytes as a file, which is sent piece by piece."""
    return BytesIO(body) if isinstance(body, bytes) and len(body) > _LARGE_BYTES else body


async def _error_body(response: aiohttp.ClientResponse) -> bytes:
    """As much of it as comes in time: the status tells more than how the body ends."""
    raw = bytearray()
    with suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(_ERROR_BODY_S):
            while len(raw) < _ERROR_BODY_BYTES and (piece := await response.content.readany()):
                raw += piece
    return bytes(raw)


def refusal(vendor: str, status: int, raw: bytes, headers: Mapping[str, str]) -> ServiceError:
    """The error of an answer that is none: with the vendor's own words where they are short and plain."""
    error = _error(raw)
    message, code = _words(error)
    if code == "engine_missing":  # an engine of this machine that nobody installed: the operator's to mend
        return ConfigInvalid(f"{vendor}: {message}")
    told = f"answered {status}" + (f": {message}" if message else "")
    quota = code in {"insufficient_quota", "quota_exceeded"}
    return Refused(
        vendor,
        told,
        retryable=status in RETRYABLE_STATUS and not quota,
        retry_after_s=_retry_after_s(headers, error),
        status=status,
        extra={"code": code} if code else None,
    )


def _error(raw: bytes) -> Mapping[str, Any]:
    """What the body of an error tells: of its `error` or `detail`, a list's first, or else of all of it."""
    try:
        value = _first(loads(raw))
    except ValueError:
        return {}
    if isinstance(value, dict):
        value = _first(value.get("error") or value.get("detail") or value)
    elif not isinstance(value, str):
        value = {}
    return value if isinstance(value, dict) else {"message": value}


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _words(error: Mapping[str, Any]) -> tuple[str, str]:
    message = error.get("message") or error.get("msg") or ""
    codes = [code for name in ("code", "status", "type") if (code := error.get(name))]
    named = [code for code in codes if isinstance(code, str)]
    return " ".join(str(message).split())[:200], str(next(iter(named or codes), ""))[:64]


def _retry_after_s(headers: Mapping[str, str], error: Mapping[str, Any]) -> float | None:
    if milliseconds := headers.get("retry-after-ms"):
        return _seconds(milliseconds, per=1000)
    given = headers.get("Retry-After")
    if given is None:
        return _retry_delay_s(error.get("details"))
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - now_ms() / 1000)
    except ValueError:
        return _seconds(given)


def _retry_delay_s(details: Any) -> float | None:
    """The `RetryInfo` of Google's errors: `3s`."""
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and isinstance(delay := detail.get("retryDelay"), str):
            return _seconds(delay.removesuffix("s"))
    return None


def _seconds(given: str, *, per: int = 1) -> float | None:
    try:
        seconds = float(given) / per
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _worth_a_retry(error: BaseException) -> bool:
    return (
        isinstance(error, VendorError)
        and error.retryable
        and not isinstance(error, TimedOut)
        and (error.retry_after_s or 0) <= MAX_RETRY_AFTER_S
    )


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, VendorError) and error.retry_after_s is not None:
        return error.retry_after_s
    return random.uniform(0.05, 0.25)  # noqa: S311 - jitter


@contextmanager
def map_errors(vendor: str) -> Iterator[None]:
    """Turn a fault of the network or of HTTP into a `VendorError`."""
    try:
        yield
    except (aiohttp.ConnectionTimeoutError, aiohttp.ServerTimeoutError, TimeoutError) as error:
        raise TimedOut(vendor, "did not answer in time", retryable=True) from error
    except (aiohttp.ClientPayloadError, aiohttp.ClientResponseError) as error:
        raise Garbled(vendor, "broke off its answer", retryable=True) from error
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
        raise Unreachable(vendor, "has an address that is none") from error
    except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
        raise Unreachable(vendor, "was not reached", retryable=True) from error


class _NoSocketError(Exception):
    """Status, body and headers of an answer to a handshake."""


async def _socket_or_error(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Read why a handshake was refused; nor follow it elsewhere, which would take the account's key along."""
    response = await send(request)
    if response.status == HTTPStatus.SWITCHING_PROTOCOLS:
        return response
    try:
        raise _NoSocketError(response.status, await _error_body(response), response.headers)
    finally:
        response.close()


@asynccontextmanager
async def open_vendor_http(*, request_limit: int = 0) -> AsyncIterator[VendorHttp]:
    """The client of the process: no proxy from the environment, no cookies, connections kept for a minute."""
    connector = aiohttp.TCPConnector(limit=request_limit, keepalive_timeout=60, ttl_dns_cache=60)
    cookie_jar = aiohttp.DummyCookieJar()
    async with (
        aiohttp.ClientSession(
            connector=connector,
            cookie_jar=cookie_jar,
            trust_env=False,
            auto_decompress=True,
            read_bufsize=256 * 1024,
        ) as session,
        aiohttp.ClientSession(
            connector=connector,
            connector_owner=False,
            cookie_jar=cookie_jar,
            trust_env=False,
            middlewares=(_socket_or_error,),
        ) as socket_session,
    ):
        yield VendorHttp(session, socket_session)
