"""HTTP calls of a server: addresses, headers, errors."""

import json
import re
from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self
from urllib.parse import quote, urlencode

from aiohttp import (
    ClientError,
    ClientHandlerType,
    ClientPayloadError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    InvalidURL,
    ServerDisconnectedError,
    TCPConnector,
)
from yarl import URL

from parley_client.backoff import retry_after_of
from parley_client.errors import ConnectionLost, NotUnderstood, ParleyError, invalid_parameter

_CONNECT_S = 10
_SHOWN = 60
_BASE_URL = re.compile(r"https?://[^\s/?#@\\]+(/[^\s?#]*)?", re.IGNORECASE)
_FAULTS = {
    ServerDisconnectedError: "the server has closed the connection",
    ClientPayloadError: "the response broke off",
    TimeoutError: "the server did not respond in time",
}
"""Faults whose messages are those of aiohttp's internals, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call of the interface, with the path that clients use."""

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    """Without the values that are None."""
    body: bytes = b""
    """What is signed: the whole body, or the parameters before the input of a stream."""
    input: bytes | Callable[[], AsyncIterable[bytes]] = b""
    """What follows `body`."""
    content_type: str | None = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    authenticated: bool = True
    """Whether the call has a session. Those before a login are only signed."""
    renews: bool = True
    """Whether a new session is made if this one has ended."""
    repeatable: bool = False
    """Whether the server may get it twice."""
    timeout_s: float | None = 30
    """Seconds for the whole response."""
    silence_s: float | None = None
    """Seconds without a byte after which the connection counts as lost."""


class Caller(Protocol):
    """Who calls: a user's client, or an app's server."""

    @property
    def session(self) -> object:
        """What authenticates the user, and is replaced when it has ended."""

    async def renew(self, used: object) -> bool:
        """Replace `used`, unless this has happened meanwhile. Returns whether there is another session now."""

    def path(self, path: str) -> str:
        """Return the path that this caller uses in place of a client's path."""

    def headers(self, request: Request, target: str) -> Mapping[str, str]:
        """Return the headers that authenticate a request to `target`, the path and the query as they are sent."""


class Http:
    """Sends requests over the connections of one `ClientSession`, which it opens when it is first needed."""

    def __init__(self, base_url: str, *, session: ClientSession | None = None) -> None:
        if not _BASE_URL.fullmatch(base_url):
            raise ValueError(f"base URL must be like https://parley.example.com, and not {base_url}")
        self._base_url = base_url.rstrip("/")
        self._session = session
        self._owns_session = session is None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._owns_session and self._session is not None:
            await self._session.close()
            self._session = None

    async def open(self, request: Request, caller: Caller) -> ClientResponse:
        """Send a request and return the response, whose body the caller reads and closes.

        Raises `ParleyError` if it is an error response, and `ConnectionLost` if there is none.
        """

        async def authenticate(sent: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
            # For each attempt, since aiohttp itself repeats some requests and a nonce is valid once.
            sent.headers.update(caller.headers(request, sent.url.raw_path_qs))
            return await handler(sent)

        url = URL(f"{self._base_url}{caller.path(request.path)}{_query(request.query)}", encoded=True)
        content_type = {"Content-Type": request.content_type} if request.content_type and request.body else {}
        try:
            response = await self._opened().request(
                request.method,
                url,
                data=_data(request),
                headers={**content_type, **request.headers},
                timeout=ClientTimeout(
                    total=request.timeout_s, sock_connect=_CONNECT_S, sock_read=request.silence_s
                ),
                middlewares=(authenticate,),
                allow_redirects=False,
            )
            if response.status < 300:
                return response
            async with response:
                raise error_of(response, await response.read())
        except InvalidURL:
            raise
        except (ClientError, TimeoutError, OSError) as error:
            raise lost(error) from error

    def _opened(self) -> ClientSession:
        """Return the session. It limits no connections, because each stream keeps one while it runs."""
        if self._session is None:
            self._session = ClientSession(cookie_jar=DummyCookieJar(), connector=TCPConnector(limit=0))
        return self._session


def _query(parameters: Mapping[str, object]) -> str:
    return f"?{urlencode(found, quote_via=quote)}" if (found := given(parameters)) else ""


def _data(request: Request) -> bytes | AsyncIterable[bytes] | None:
    if isinstance(request.input, bytes):
        return request.body + request.input or None
    return _chunks(request.body, request.input())


async def _chunks(body: bytes, pieces: AsyncIterable[bytes]) -> AsyncIterable[bytes]:
    yield body
    async for piece in pieces:
        yield piece


def lost(error: BaseException) -> ConnectionLost:
    """Return the error for a fault of the network."""
    found = (words for kind, words in _FAULTS.items() if isinstance(error, kind))
    return ConnectionLost(next(found, None) or str(error) or type(error).__name__)


def error_of(response: ClientResponse, body: bytes) -> ParleyError:
    """Return the error of an error response."""
    request_id, retry_after = response.headers.get("X-Request-Id"), retry_after_of(response.headers)
    try:
        envelope = json.loads(body)
        error = envelope["error"]
        return ParleyError(
            str(error["error_type"]).replace(" ", "_"),
            str(error["message"]),
            status=response.status,
            extra=error.get("extra"),
            request_id=request_id,
            retry_after=retry_after,
            bp_auth=envelope.get("bp_auth"),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        fault = _not_a("an error of Parley", response.status, body)
        if 300 <= response.status < 400:
            location = json.dumps(response.headers.get("Location", ""))
            fault = f"status {response.status} is a redirect to {location}, which is not followed"
        return NotUnderstood(fault, status=response.status, request_id=request_id, retry_after=retry_after)


def _not_a(expected: str, status: int, body: bytes) -> str:
    """Return what is wrong with a body."""
    shown = json.dumps(body.decode(errors="replace")[:_SHOWN], ensure_ascii=False)
    return f"status {status} with a body that is not {expected}: {shown}"


class Reply(dict[str, Any]):
    """The JSON object of a response. A field that every response has, and this one lacks, is not understood."""

    def __missing__(self, name: str) -> Any:
        raise NotUnderstood(f"the response has no field {name!r}")


async def read_json(response: ClientResponse) -> Reply:
    """Read a response and close it. An empty body is an empty object."""
    async with response:
        try:
            body = await response.read()
        except (ClientError, TimeoutError, OSError) as error:
            raise lost(error) from error
    try:
        content = json.loads(body) if body.strip() else {}
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise NotUnderstood(_not_a("a JSON object", response.status, body), status=response.status)
    return Reply(content)


def given(parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters that are not None, which means that they were not given."""
    return {name: value for name, value in parameters.items() if value is not None}


def encoded(body: object) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as error:
        raise invalid_parameter(f"the parameters are not JSON: {error}") from error


def segment(value: str) -> str:
    """Return an id as one segment of a path. Raises `ParleyError` for those that would make it another path."""
    if value in {"", ".", ".."}:
        raise invalid_parameter('an id must be a text other than "", "." and ".."')
    return quote(value, safe="")
