"""WebSockets of vendor A's speech service: URLs, turns and errors."""

import platform
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

from streams.wire.codec import dumps
from vendors.account import Account
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.sockets import Socket
from vendors.http.transport import VendorHttp
from vendors.json_events import loads_whole, object_of
from vendors.speech.azure.frames import Frame, binary_frame, read_frame, text_frame

_REGIONAL_HOST = re.compile(
    r"(?P<region>[a-z0-9-]+)\.(?:api\.cognitive|(?:tts|stt)\.speech)\.(?P<cloud>microsoft\.com|azure\.cn|azure\.us)"
)
_SYSTEM = {
    "system": {"name": "Parley", "version": "1", "build": "Python", "lang": "Python"},
    "os": {"platform": platform.system(), "name": platform.system(), "version": platform.release()},
}
_INVALID_REQUEST = frozenset({1002, 1003, 1007, 1008, 4000})
"""Close codes that mean that the request is invalid."""
_BAD_PAYLOAD = 1007
_TOO_MANY = 4429
_TRANSIENT = frozenset({1011, 1012, 1013, 1014, _TOO_MANY})


def http_url(account: Account, path: str, query: Mapping[str, str] | None = None) -> str:
    """Return the account's URL for HTTP requests. `path` starts with the service, `/tts` or `/stt`.

    A region has one host for each service, whichever of them `base_url` names, and their paths do not contain the
    service. A resource with a custom domain has all services under that domain.
    """
    service, service_path = path[1:4], path[4:]
    regional = _regional(account, service)
    return (regional + service_path if regional else account.url(path)) + _query_string(query)


def socket_url(account: Account, path: str, query: Mapping[str, str] | None = None) -> str:
    """Return the account's URL for WebSockets, whose paths always start with the service."""
    return (_regional(account, path[1:4]) or account.base_url) + path + _query_string(query)


def _regional(account: Account, service: str) -> str | None:
    region = _REGIONAL_HOST.fullmatch(urlsplit(account.base_url).netloc.lower())
    return f"https://{region['region']}.{service}.speech.{region['cloud']}" if region else None


def _query_string(query: Mapping[str, str] | None) -> str:
    return f"?{urlencode(query)}" if query else ""


def key_header(account: Account) -> dict[str, str]:
    """Return the header with the account's key, or no header if it has no key (local servers)."""
    key = account.api_key.get_secret_value() if account.api_key else ""
    return {"Ocp-Apim-Subscription-Key": key} if key else {}


def new_request_id() -> str:
    """Return a new id. It has no dashes, because the vendor rejects them."""
    return uuid4().hex


class SpeechSocket:
    """A WebSocket connection. Turns run on it one after the other, each with its own request id."""

    def __init__(self, socket: Socket) -> None:
        self.vendor = socket.vendor
        self._socket = socket
        self._request_id = new_request_id()

    def new_turn(self) -> None:
        self._request_id = new_request_id()

    async def send_text(self, path: str, body: str, *, content_type: str = "application/json") -> None:
        """Send a text message in the current turn."""
        headers = self._headers(path) | {"Content-Type": content_type}
        await self._socket.send(text_frame(headers, body))

    async def send_json(self, path: str, value: Mapping[str, Any]) -> None:
        await self.send_text(path, dumps(value).decode())

    async def configure(self, **context: Any) -> None:
        """Send `speech.config`, which is required once before the first turn."""
        await self.send_json("speech.config", {"context": {**_SYSTEM, **context}})

    async def send_audio(self, audio: bytes, *, content_type: str | None = None) -> None:
        """Send a piece of the turn's audio. An empty piece ends the audio."""
        headers = self._headers("audio")
        if content_type is not None:
            headers["Content-Type"] = content_type
        await self._socket.send(binary_frame(headers, audio))

    async def frames(self) -> AsyncGenerator[Frame]:
        """Yield the messages of the current turn.

        The caller stops at its end, so a closed socket is always an error.
        """
        async with aclosing(self._socket.messages()) as messages:
            async for message in messages:
                try:
                    frame = read_frame(message)
                except ValueError as error:
                    raise Garbled(self.vendor, f"sent a malformed message: {error}") from None
                if frame.request_id.lower() == self._request_id:
                    yield frame
        raise close_error(self.vendor, self._socket.close_code, self._socket.close_reason)

    async def close(self) -> None:
        """Close the socket, which ends `frames`."""
        await self._socket.close()

    def _headers(self, path: str) -> dict[str, str]:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        return {"Path": path, "X-RequestId": self._request_id, "X-Timestamp": f"{now}Z"}


@asynccontextmanager
async def open_speech_socket(
    http: VendorHttp, account: Account, url: str, *, connect_s: float, heartbeat_s: float | None = None
) -> AsyncIterator[SpeechSocket]:
    """Open a WebSocket, which is closed at the end of the block."""
    headers = {**key_header(account), "X-ConnectionId": new_request_id()}
    call = Outgoing(account.platform, url, headers=headers, connect_s=connect_s, repeat=Repeat.SAFE)
    async with http.websocket(call, heartbeat_s=heartbeat_s) as socket:
        yield SpeechSocket(socket)


def close_error(vendor: str, code: int, reason: str) -> VendorError:
    """Return the error for a socket that the vendor closed before the end of the turn."""
    text = " ".join(reason.split())[:200]
    reason_text = f"closed its WebSocket with code {code}" + (f": {text}" if text else "")
    if code in _INVALID_REQUEST:
        # An invalid payload is the fault of the request, not of the account. The same code reports a used-up quota.
        bad_payload = code == _BAD_PAYLOAD and "quota" not in reason.lower()
        return Refused(vendor, reason_text, vendor_status=400 if bad_payload else None)
    if code in _TRANSIENT:
        return Refused(vendor, reason_text, retryable=True, vendor_status=429 if code == _TOO_MANY else None)
    return Garbled(vendor, f"ended its turn without a final event ({code})", retryable=True)


def json_body(vendor: str, frame: Frame) -> Mapping[str, Any]:
    """Return the JSON object in a frame, `{}` for an empty body and other JSON."""
    try:
        return object_of(loads_whole(frame.body)) if frame.body.strip() else {}
    except ValueError as error:
        raise Garbled(vendor, f"sent a {frame.path} that is not JSON: {error}") from None
