"""A socket to vendor A: its addresses, its turns, its faults made ours."""

import platform
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

from streams.wire.codec import dumps, loads
from vendors.account import Account
from vendors.errors import Garbled, Refused, VendorError
from vendors.speech.azure_frames import Frame, binary_frame, read_frame, text_frame
from vendors.transport import Outgoing, Socket, VendorHttp

_REGIONAL_HOST = re.compile(
    r"(?P<region>[a-z0-9-]+)\.(?:api\.cognitive|(?:tts|stt)\.speech)\.(?P<cloud>microsoft\.com|azure\.cn|azure\.us)"
)
_SYSTEM = {
    "system": {"name": "Parley", "version": "1", "build": "Python", "lang": "Python"},
    "os": {"platform": platform.system(), "name": platform.system(), "version": platform.release()},
}
_FINAL = frozenset({1002, 1003, 1007, 1008, 4000})
"""Codes of a close that says the request itself is wrong."""
_BAD_PAYLOAD = 1007
_TOO_MANY = 4429
_FAILED = frozenset({1011, 1012, 1013, 1014, _TOO_MANY})


def http_url(account: Account, path: str, query: Mapping[str, str] | None = None) -> str:
    """Where the account answers over HTTP. `path` begins with the service, `/tts` or `/stt`.

    A region has a host for each service, whichever of its hosts `base_url` names, and there the service is no
    part of the path. A resource with a domain of its own has all services under it.
    """
    service, rest = path[1:4], path[4:]
    regional = _regional(account, service)
    return (regional + rest if regional else account.url(path)) + _asked(query)


def socket_url(account: Account, path: str, query: Mapping[str, str] | None = None) -> str:
    """The same for sockets, whose paths begin with the service everywhere."""
    return (_regional(account, path[1:4]) or account.base_url) + path + _asked(query)


def _regional(account: Account, service: str) -> str | None:
    region = _REGIONAL_HOST.fullmatch(urlsplit(account.base_url).netloc.lower())
    return f"https://{region['region']}.{service}.speech.{region['cloud']}" if region else None


def _asked(query: Mapping[str, str] | None) -> str:
    return f"?{urlencode(query)}" if query else ""


def key_header(account: Account) -> dict[str, str]:
    """The account's key; none where it has none (local servers)."""
    key = account.api_key.get_secret_value() if account.api_key else ""
    return {"Ocp-Apim-Subscription-Key": key} if key else {}


def new_request_id() -> str:
    """Without dashes: with them it is a protocol error."""
    return uuid4().hex


class Line:
    """One connection: turns run on it one after the other, each with an id of its own."""

    def __init__(self, socket: Socket) -> None:
        self.vendor = socket.vendor
        self._socket = socket
        self._request_id = new_request_id()

    def new_turn(self) -> None:
        self._request_id = new_request_id()

    async def say(self, path: str, body: str, *, content_type: str = "application/json") -> None:
        """Send a text message of this turn."""
        headers = self._headers(path) | {"Content-Type": content_type}
        await self._socket.send(text_frame(headers, body))

    async def say_json(self, path: str, value: Mapping[str, Any]) -> None:
        await self.say(path, dumps(value).decode())

    async def configure(self, **context: Any) -> None:
        """Say once, before the first turn, who is calling."""
        await self.say_json("speech.config", {"context": {**_SYSTEM, **context}})

    async def send_audio(self, audio: bytes, *, content_type: str | None = None) -> None:
        """A piece of this turn's audio; an empty one ends it."""
        headers = self._headers("audio")
        if content_type is not None:
            headers["Content-Type"] = content_type
        await self._socket.send(binary_frame(headers, audio))

    async def frames(self) -> AsyncGenerator[Frame]:
        """What the vendor says in this turn. It is the caller who ends it: a close is always a fault here."""
        async with aclosing(self._socket.messages()) as messages:
            async for message in messages:
                try:
                    frame = read_frame(message)
                except ValueError as error:
                    raise Garbled(self.vendor, f"sent a message without its form: {error}") from None
                if frame.request_id.lower() == self._request_id:
                    yield frame
        raise closed(self.vendor, self._socket.close_code, self._socket.close_reason)

    async def hang_up(self) -> None:
        """Close now, which ends `frames`."""
        await self._socket.close()

    def _headers(self, path: str) -> dict[str, str]:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        return {"Path": path, "X-RequestId": self._request_id, "X-Timestamp": f"{now}Z"}


@asynccontextmanager
async def line_to(
    http: VendorHttp, account: Account, url: str, *, connect_s: float, heartbeat_s: float | None = None
) -> AsyncIterator[Line]:
    """A line that was accepted, closed with the block."""
    headers = {**key_header(account), "X-ConnectionId": new_request_id()}
    call = Outgoing(account.platform, url, headers=headers, connect_s=connect_s)
    async with http.websocket(call, heartbeat_s=heartbeat_s) as socket:
        yield Line(socket)


def closed(vendor: str, code: int, reason: str) -> VendorError:
    """The fault of a socket that was closed before the turn's end."""
    told = " ".join(reason.split())[:200]
    why = f"closed its socket with {code}" + (f": {told}" if told else "")
    if code in _FINAL:
        # a payload that it does not take is the request's fault, not the account's; but so it tells of a quota too
        wrong = code == _BAD_PAYLOAD and "quota" not in reason.lower()
        return Refused(vendor, why, status=400 if wrong else None)
    if code in _FAILED:
        return Refused(vendor, why, retryable=True, status=429 if code == _TOO_MANY else None)
    return Garbled(vendor, f"ended its turn without its end mark ({code})", retryable=True)


def json_body(vendor: str, frame: Frame) -> dict[str, Any]:
    """The object in a frame; an empty body is an empty one."""
    try:
        value = loads(frame.body) if frame.body.strip() else {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Garbled(vendor, f"sent a {frame.path} that is no JSON object")
    return value
