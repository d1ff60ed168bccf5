"""What all Azure services of the sandbox share: keys, errors, and the messages on their sockets."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from aiohttp import web

from streams.wire.codec import dumps, loads
from vendors.sandbox.calls import Dialect, Framing, Refusal
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.flow import Close
from vendors.sandbox.sockets import ClientLeft, Socket
from vendors.speech.azure.frames import Frame, read_frame

TICKS_PER_MS = 10_000
_ID = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)
_PATHS = ("speech.hypothesis", "speech.phrase", "audio.metadata", "audio", "response", "unknown")
_JSON = "application/json; charset=utf-8"


class ProtocolError(Exception):
    """The client violated the protocol. Its socket is closed with `close`."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.close = Close(code, reason)


def _key(request: web.Request) -> str:
    """Return the key from a header or from the query, because browsers cannot set headers on sockets."""
    name = "Ocp-Apim-Subscription-Key"
    if key := request.headers.get(name) or request.query.get(name):
        return key.strip()
    scheme, _, token = (request.headers.get("Authorization") or request.query.get("Authorization", "")).partition(
        " "
    )
    return token.strip() if scheme.lower() == "bearer" else ""


def plain_text(status: int, text: str, headers: Mapping[str, str] | None = None) -> Refusal:
    return Refusal(status, text.encode(), {"Content-Type": "text/plain; charset=utf-8", **(headers or {})})


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    match fault:
        case Fault.UNAUTHORIZED:
            return plain_text(401, "Access denied due to invalid subscription key or wrong API endpoint.")
        case Fault.RATE_LIMITED:
            return plain_text(429, "Too Many Requests", {"Retry-After": f"{key_options.retry_after_s:g}"})
        case Fault.OUT_OF_QUOTA:
            return plain_text(403, "Out of call volume quota.")
        case Fault.UNAVAILABLE:
            return plain_text(503, "Service Unavailable")
        case _:
            return plain_text(500, "")


AZURE = Dialect("azure", _key, _refuse)

SOCKET = Framing("a socket", error=Close(1011, "Internal server error."), malformed=b"\x00\x40Path:audi")


def text_message(path: str, request_id: str, body: Mapping[str, Any] | None = None) -> str:
    """Return a text message as the service writes it, without a space after the colons of its headers."""
    return _message(path, request_id, dumps(body or {}))


def odd_messages(request_id: str, odd: bytes) -> list[str]:
    """Return messages of a turn with JSON that a client should skip."""
    return [_message(path, request_id, odd) for path in _PATHS]


def _message(path: str, request_id: str, body: bytes) -> str:
    return f"X-RequestId:{request_id}\r\nContent-Type:{_JSON}\r\nPath:{path}\r\n\r\n{body.decode()}"


def audio_message(request_id: str, stream_id: str, audio: bytes, content_type: str | None) -> bytes:
    kind = f"Content-Type:{content_type}\r\n" if content_type else ""
    head = f"X-RequestId:{request_id}\r\n{kind}X-StreamId:{stream_id}\r\nPath:audio\r\n".encode("ascii")
    return bytes(divmod(len(head), 256)) + head + audio


def new_tag() -> str:
    return uuid4().hex


class TurnReader:
    """Reads and validates a client's messages: first a configuration, then turns with their own ids."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._configured = False
        self._ended: set[str] = set()

    async def next_turn(self) -> Frame | None:
        """Return the first message of the next turn, or None if the client left after a complete turn."""
        try:
            return await self.next()
        except (ClientLeft, asyncio.CancelledError):
            if not self._ended:
                raise
            return None

    async def next(self) -> Frame:
        """Return the next message that belongs to a turn."""
        while True:
            frame = self._read(await self._socket.receive())
            if frame.path == "telemetry" or (frame.path == "audio" and frame.request_id in self._ended):
                continue  # The message is late: its turn has ended.
            if not self._configured and frame.path != "speech.config":
                raise ProtocolError(1002, "The first message must be speech.config.")
            if frame.path == "speech.config":
                if self._configured:
                    raise ProtocolError(1002, "speech.config was sent before on this connection.")
                json_of(frame)
                self._configured = True
                continue
            if not _ID.fullmatch(frame.request_id):
                raise ProtocolError(1002, "X-RequestId must be a UUID without dashes.")
            if frame.request_id in self._ended:
                raise ProtocolError(1002, "X-RequestId was used before.")
            return frame

    def end_turn(self, request_id: str) -> None:
        self._ended.add(request_id)

    @staticmethod
    def _read(message: str | bytes) -> Frame:
        try:
            frame = read_frame(message)
        except ValueError as error:
            raise ProtocolError(1002, f"Malformed message: {error}.") from None
        if "x-timestamp" not in frame.headers:
            raise ProtocolError(1002, "X-Timestamp is missing.")
        if frame.path == "audio" and isinstance(message, str):
            raise ProtocolError(1003, "Audio must be binary.")
        return frame


def json_of(frame: Frame) -> dict[str, Any]:
    try:
        value = loads(frame.body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ProtocolError(1007, f"{frame.path} must be a JSON object.")
    return value
