"""A client that uses little CPU per event and checks that each stream is complete."""

import asyncio
import re
import ssl
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import cast
from urllib.parse import urlsplit

from bench.scenarios import SCENARIOS, Load, Request
from bench.stream_outcome import EventCounter, StreamParser

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_SENT_AT = re.compile(r" (\d{12,})$")
_FAULT_CHARACTERS = 200


@dataclass(slots=True)
class Stream:
    """The outcome of one stream. Times are values of `time.monotonic()`; `begun` is when the stream was due."""

    begun: float
    events: int = 0
    first_event: float = 0
    first_output: float = 0
    last_event: float = 0
    longest_gap_s: float = 0
    """The longest time between two reads that brought events."""
    outcome: str = ""
    """`end`, or `error` followed by the error type."""
    fault: str = ""
    """Why the stream is incomplete or invalid; empty if it is valid."""


@dataclass(slots=True)
class Sample:
    """Measurements of all streams that are parsed in full."""

    read: int = 0
    gaps_s: list[float] = field(default_factory=list)
    transits_s: list[float] = field(default_factory=list)
    """Time from the vendor's write to the client's read, for events whose text ends with the vendor's clock."""
    names: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Target:
    """The server under load. `tokens` are the session tokens of its users; empty for a target without users."""

    url: str
    tokens: Sequence[str] = ()
    app_id: str = ""
    digests: bool = True
    """Whether the `end` event carries a digest of the stream's text and audio."""


class Connection(asyncio.Protocol):
    """One connection that carries one request at a time."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._transport: asyncio.Transport | None = None
        self._done: asyncio.Future[None] | None = None
        self._stream = Stream(0)
        self._head = b""
        self._status = 0
        self._content_length: int | None = None
        """The `Content-Length` of the response; None if the body is chunked."""
        self._body = b""
        self._counter = EventCounter(b"")
        self._parser: StreamParser | None = None

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish(f"the connection was lost: {exc!r}" if exc else "the connection was closed")

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def ask(self, request: Request, stream: Stream, *, in_full: bool, timeout_s: float) -> None:
        """Send `request` and read the response to its end. The outcome goes into `stream`."""
        assert self._transport is not None, "not connected"
        client = self._client
        self._stream, self._head, self._status, self._content_length, self._body = stream, b"", 0, None, b""
        self._counter = EventCounter(client.marker)
        self._parser = StreamParser(needs_digest=client.target.digests) if in_full else None
        self._done = asyncio.get_running_loop().create_future()
        timer = asyncio.get_running_loop().call_later(timeout_s, self._too_late, timeout_s)
        try:
            self._transport.write(request.first)
            for piece in request.pieces:
                await asyncio.sleep(request.every_s)
                if self._done.done() or not self.open:
                    break
                self._transport.write(piece)
            await self._done
        finally:
            timer.cancel()

    def _too_late(self, timeout_s: float) -> None:
        self._finish(f"no end in {timeout_s:g} s")
        self.close()

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        if not self._status:
            body = self._body_after_head(data)
            if body is None:
                return
            data = body
        if self._content_length is not None:
            self._read_body(data, now)
            return
        stream, counter = self._stream, self._counter
        if more := counter.feed(data):
            self._client.events += more
            if stream.last_event:
                gap_s = now - stream.last_event
                stream.longest_gap_s = max(stream.longest_gap_s, gap_s)
                if self._parser is not None:
                    self._client.sample.gaps_s.append(gap_s)
            else:
                stream.first_event = now
            stream.last_event = now
        if counter.begun and not stream.first_output:
            stream.first_output = now
        if self._parser is not None:
            self._read_in_full(self._parser, data, now)
        if counter.complete:
            self._end()

    def _body_after_head(self, data: bytes) -> bytes | None:
        """Return the part of `data` that belongs to the body, or None while the head is incomplete."""
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            return None
        self._status = int(self._head[9:12])
        length = _LENGTH.search(self._head, 0, end)
        self._content_length = int(length[1]) if length else None
        return self._head[end + 4 :]

    def _read_body(self, data: bytes, now: float) -> None:
        stream = self._stream
        stream.first_event = stream.first_event or now
        self._body += data
        if len(self._body) < cast("int", self._content_length):
            return
        if self._status == 200 and not self._client.marker:
            stream.first_output, stream.outcome = now, "end"
            self._finish("")
        else:
            self._finish(f"{self._status} {self._body[:_FAULT_CHARACTERS].decode(errors='replace')}")

    def _read_in_full(self, parser: StreamParser, data: bytes, now: float) -> None:
        sample = self._client.sample
        for event in parser.feed(data):
            sample.names[event.name] += 1
        for text in parser.texts:
            if sent_at := _SENT_AT.search(text):
                sample.transits_s.append(now - int(sent_at[1]) / 1e9)

    def _end(self) -> None:
        stream = self._stream
        stream.outcome, fault = self._counter.outcome()
        stream.events = self._counter.events
        if fault and self._status != 200:
            fault = f"status {self._status}: {fault}"
        if (parser := self._parser) is not None:
            parser.end()
            fault = fault or parser.fault
            self._client.sample.read += 1
        self._finish(fault)

    def _finish(self, fault: str) -> None:
        if self._done is not None and not self._done.done():
            self._stream.fault = self._stream.fault or fault
            self._done.set_result(None)


class Client:
    """The users of one server, over as many connections as needed. `events` counts the events read so far."""

    def __init__(self, target: Target, load: Load) -> None:
        parts = urlsplit(target.url)
        scenario = SCENARIOS[load.scenario]
        self.target = target
        self.marker = scenario.marker
        self.sample = Sample()
        self.events = 0
        self._host = parts.hostname or "127.0.0.1"
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls else 80)
        self._idle: list[Connection] = []
        self._begun = 0
        self._load = load
        app = {"X-Service-App-Id": target.app_id} if target.app_id else {}
        headers = [{**app, "X-Service-Session-Token": token} for token in target.tokens] or [app]
        made = [scenario.request(load, host=parts.netloc, headers=fields) for fields in headers]
        self._requests = cycle(made)

    async def ask(self, stream: Stream) -> None:
        """Run one stream as the next user and record its outcome in `stream`."""
        request, in_full = next(self._requests), self._begun % self._load.read_every == 0
        self._begun += 1
        try:
            async with asyncio.timeout(self._load.timeout_s):
                connection = await self._connection()
            await connection.ask(
                request,
                stream,
                in_full=in_full and bool(self.marker),
                timeout_s=self._load.timeout_s,
            )
        except (OSError, TimeoutError) as error:
            stream.fault = f"no connection: {error!r}"
        else:
            if connection.open:
                self._idle.append(connection)

    async def _connection(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(self), self._host, self._port, ssl=self._tls
        )
        return connection

    def close(self) -> None:
        """Close the idle connections. Call this after all streams have ended."""
        for connection in self._idle:
            connection.close()
