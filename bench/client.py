"""A client that reads event streams for next to nothing, and checks that they are whole."""

import asyncio
import re
import ssl
import time
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

from streams.wire.codec import dumps

_PATH = "/bp/ai/conversation"
_TEXT = b"event: assistant_output_chunk\n"
_SENT_AT = re.compile(rb' (\d{12,})"\}')
_LAST_ID = re.compile(rb"id: (\d+)\nevent: (?:end|error)\ndata: (.*)\n\n$")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass(slots=True)
class Stream:
    """What came of one stream. Times are of `time.monotonic`; `begun` is when it was due."""

    begun: float
    events: int = 0
    first_event: float = 0
    first_text: float = 0
    transits_s: list[float] = field(default_factory=list)
    """Of events whose text is the vendor's clock: from the vendor's write to here."""
    fault: str = ""


class Connection(asyncio.Protocol):
    """One connection, one stream at a time."""

    def __init__(self) -> None:
        self._input = bytearray()
        self._partial = b""
        self._stream = Stream(0)
        self._whole = False
        self._status = 0
        self._length: int | None = None
        self._done: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish("the connection was lost")

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def converse(self, request: bytes, stream: Stream) -> None:
        """Send `request` and follow its answer to the end, into `stream`."""
        assert self._transport is not None, "it is connected"
        self._stream, self._status, self._partial, self._whole = stream, 0, b"", False
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        await self._done

    def data_received(self, data: bytes) -> None:
        self._input += data
        if not self._status and not self._read_head():
            return
        if self._length is not None:
            self._read_refusal(self._length)
        else:
            self._read_chunks(time.monotonic())

    def _read_head(self) -> bool:
        end = self._input.find(b"\r\n\r\n")
        if end < 0:
            return False
        self._status = int(self._input[9:12])
        length = _LENGTH.search(self._input, 0, end)
        self._length = int(length[1]) if length else None
        del self._input[: end + 4]
        return True

    def _read_refusal(self, length: int) -> None:
        if len(self._input) >= length:
            body = bytes(self._input[:length])
            del self._input[:length]
            self._finish(f"{self._status} {body[:200].decode(errors='replace')}")

    def _read_chunks(self, now: float) -> None:
        """Take the whole chunks that are there. What stands in a chunk need not be whole events."""
        raw = self._input
        while (line := raw.find(b"\r\n")) > 0:
            start = line + 2
            size = int(raw[:line], 16)
            if len(raw) < start + size + 2:
                return
            body = bytes(raw[start : start + size])
            del raw[: start + size + 2]
            if not size:
                self._finish("" if self._whole else f"{self._status}, and it ended without an end")
                return
            self._read_events(self._partial + body, now)

    def _read_events(self, body: bytes, now: float) -> None:
        cut = body.rfind(b"\n\n") + 2
        ready, self._partial = (body[:cut], body[cut:]) if cut > 1 else (b"", body)
        stream = self._stream
        stream.events += ready.count(b"\n\n") - ready.count(b"event: ping\n")
        stream.first_event = stream.first_event or now
        if (at := ready.rfind(_TEXT)) >= 0:
            stream.first_text = stream.first_text or now
            if sent_at := _SENT_AT.search(ready, at):
                stream.transits_s.append(now - int(sent_at[1]) / 1e9)
        if last := _LAST_ID.search(ready):
            self._whole = True
            if b"event: error\n" in last[0]:
                stream.fault = last[2][:200].decode()
            elif int(last[1]) != stream.events:
                stream.fault = f"{stream.events} events, the last has number {int(last[1])}"

    def _finish(self, fault: str) -> None:
        if self._done is not None and not self._done.done():
            self._stream.fault = self._stream.fault or fault
            self._done.set_result(None)


class Client:
    """A user of one server who converses by one strategy, over as many connections as need be."""

    def __init__(self, url: str, token: str, strategy: str) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or "127.0.0.1"
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls else 80)
        self._idle: list[Connection] = []
        params = dumps(
            {
                "strategies": [strategy],
                "type": "text",
                "language_code": "en-US",
                "target_language_code": "en-US",
            }
        )
        head = (
            f"POST {_PATH} HTTP/1.1\r\nHost: {parts.netloc}\r\nX-Service-Session-Token: {token}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n"
        )
        chunks = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (params, b"How are you today?", b""))
        self._request = head.encode() + b"".join(chunks)

    async def converse(self, stream: Stream) -> None:
        """One turn of a new conversation."""
        try:
            connection = await self._connection()
            await connection.converse(self._request, stream)
        except OSError as error:
            stream.fault = str(error)
        else:
            self._idle.append(connection)

    async def _connection(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, self._host, self._port, ssl=self._tls)
        return connection

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
