"""How vendors over HTTP are reached: one session, timeouts, one retry, and their faults made ours."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from streams.wire.codec import loads, now_ms
from streams.wire.errors import ConfigInvalid, ServiceError
from vendors.errors import Garbled, Refused, TimedOut, Unreachable, VendorError

MAX_RETRY_AFTER_S = 2.0
RETRYABLE_STATUS = frozenset({408, 429, 500, 502, 503, 504, 529})
_ERROR_BODY_BYTES = 16 * 1024


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

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @asynccontextmanager
    async def stream(self, call: Outgoing) -> AsyncIterator["Incoming"]:
        """A 2xx answer, its body still to come; the connection is closed with the block unless it is read out.

        A refused connection, 429 and 5xx are tried once more; then, and for any other status, `VendorError`.
        """
        response = await self._open(call)
        try:
            yield Incoming(call.vendor, response)
        finally:
            response.close()

    async def _open(self, call: Outgoing) -> aiohttp.ClientResponse:
        tries = AsyncRetrying(
            stop=stop_after_attempt(2 if call.repeatable else 1),
            retry=retry_if_exception(_worth_a_retry),
            wait=_wait,
            sleep=asyncio.sleep,
            reraise=True,
        )
        response: aiohttp.ClientResponse = await tries(self._send, call)
        return response

    async def _send(self, call: Outgoing) -> aiohttp.ClientResponse:
        with map_errors(call.vendor):
            response = await self._session.request(
                call.method,
                call.url,
                data=call.body,
                headers=call.headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=call.connect_s, connect=call.connect_s),
            )
        if response.status < 300:
            return response
        try:
            with map_errors(call.vendor):
                raw = await response.content.read(_ERROR_BODY_BYTES)
        finally:
            response.close()
        raise refusal(call.vendor, response.status, raw, response.headers)


class Incoming:
    """A vendor's answer."""

    def __init__(self, vendor: str, response: aiohttp.ClientResponse) -> None:
        self.vendor = vendor
        self.headers = response.headers
        self._response = response

    @property
    def content_type(self) -> str:
        return self._response.content_type

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. A body that is cut is `Garbled` or `Unreachable`, never an end."""
        with map_errors(self.vendor):
            async for piece in self._response.content.iter_any():
                yield piece

    async def json(self, limit_bytes: int = 8 * 1024 * 1024) -> Any:
        raw = bytearray()
        async for piece in self.pieces():
            raw += piece
            if len(raw) > limit_bytes:
                raise Garbled(self.vendor, "answered with more than is allowed")
        try:
            return loads(raw)
        except ValueError:
            raise Garbled(self.vendor, "answered with broken JSON") from None


def refusal(vendor: str, status: int, raw: bytes, headers: Mapping[str, str]) -> ServiceError:
    """The error of an answer that is none: with the vendor's own words where they are short and plain."""
    message, code = _words(raw)
    if code == "engine_missing":  # an engine of this machine that nobody installed: the operator's to mend
        return ConfigInvalid(f"{vendor}: {message}")
    told = f"answered {status}" + (f": {message}" if message else "")
    quota = code in {"insufficient_quota", "quota_exceeded"}
    return Refused(
        vendor,
        told,
        retryable=status in RETRYABLE_STATUS and not quota,
        retry_after_s=_retry_after_s(headers),
        status=status,
        extra={"code": code} if code else None,
    )


def _words(raw: bytes) -> tuple[str, str]:
    try:
        value = loads(raw)
    except ValueError:
        return "", ""
    error = value.get("error", value) if isinstance(value, dict) else {}
    if not isinstance(error, dict):
        return str(error)[:200], ""
    message, code = error.get("message") or "", error.get("code") or error.get("type") or ""
    return " ".join(str(message).split())[:200], str(code)[:64]


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    if milliseconds := headers.get("retry-after-ms"):
        try:
            return float(milliseconds) / 1000
        except ValueError:
            return None
    given = headers.get("Retry-After")
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        try:
            return max(0.0, parsedate_to_datetime(given).timestamp() - now_ms() / 1000)
        except ValueError:
            return None


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


@asynccontextmanager
async def open_vendor_http(*, request_limit: int = 0) -> AsyncIterator[VendorHttp]:
    """The client of the process: no proxy from the environment, no cookies, connections kept for a minute."""
    connector = aiohttp.TCPConnector(limit=request_limit, keepalive_timeout=60, ttl_dns_cache=60)
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=True,
        read_bufsize=256 * 1024,
    ) as session:
        yield VendorHttp(session)
