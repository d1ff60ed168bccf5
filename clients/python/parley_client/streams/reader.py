"""Reads one stream to its end: begins it, and resumes it after each disconnect."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Literal

from aiohttp import ClientError, ClientResponse

from parley_client.backoff import Attempts
from parley_client.calls import Calls
from parley_client.errors import ConnectionLost, DigestMismatch, NotUnderstood, ParleyError
from parley_client.http import Request, lost, segment
from parley_client.streams.digest import Digest
from parley_client.streams.events import End, Event, read_event
from parley_client.streams.input import Input
from parley_client.streams.sse import SseEvent, SseParser

SILENCE_S = 45.0
"""The server sends a `ping` after 15 s without another event."""
ConnectionState = Literal["none", "open", "lost"]
"""`none`: there is no connection yet, or none is needed any more. `lost`: the stream is about to be resumed."""
OnConnection = Callable[[ConnectionState, int], None]
"""Its second argument is the id of the last event that was read: 0 before the first, and after a resume that of the
one before the cut."""
_NOT_FOUND = 404
_FAULTY = 3
"""If the same place of a stream is faulty this many times, resuming it does not help."""


class StreamReader:
    """The events of a stream, each once and in the order of their ids.

    `origin` is the request that begins the stream, or the id of a stream that has begun. `source` is the input of
    the request, if it is sent while it is made and so may break off.
    """

    def __init__(
        self,
        calls: Calls,
        origin: Request | str,
        source: Input | None = None,
        on_connection: OnConnection | None = None,
    ) -> None:
        self.stream_id = origin if isinstance(origin, str) else None
        self.conversation_id: str | None = None
        self.connection: ConnectionState = "none"
        self.opened = asyncio.Event()
        """Set when the ids are known, or when they will never be."""
        self._calls = calls
        self._request = None if isinstance(origin, str) else origin
        self._input = source
        self._on_connection = on_connection
        self._last_id = 0
        self._digest = Digest()
        self._response: ClientResponse | None = None
        self._left = asyncio.Event()
        self._ended = False

    async def events(self) -> AsyncGenerator[Event]:
        """Yield the events up to `End`. Raises `ParleyError` for the stream's error, or if it cannot be resumed."""
        try:
            async with aclosing(self._all()) as events:
                async for event in events:
                    yield event
        finally:
            self.opened.set()
            if self.connection != "none":
                self._set_connection("none")

    def leave(self) -> None:
        """Close the connection. `events` ends."""
        self._left.set()
        self.disconnect()

    def disconnect(self) -> None:
        if self._response is not None:
            self._response.close()

    def _set_connection(self, state: ConnectionState) -> None:
        self.connection = state
        if self._on_connection is not None:
            self._on_connection(state, self._last_id)

    async def _all(self) -> AsyncGenerator[Event]:
        loop = asyncio.get_running_loop()
        attempts, faulty = Attempts(self._calls.backoff), 0
        while not self._left.is_set():
            before = self._last_id
            try:
                async with aclosing(self._connection()) as events:
                    async for event in events:
                        yield event
                        if self._left.is_set():
                            return
                fault: ParleyError = ConnectionLost("the response has ended before the stream")
            except ParleyError as error:
                fault = error
            if self._ended or self._left.is_set():
                return
            if self._input is not None and self._input.error is not None:
                raise self._input.error
            if self._last_id > before:
                attempts.progress()
                faulty = 0
            faulty += isinstance(fault, NotUnderstood | _Unnumbered)
            if self._input_lost(fault):
                self.stream_id = None  # The request is repeated. Its new stream has the same first event.
                fault = ConnectionLost("the connection was lost before the input had arrived")
            delay = self._delay_s(fault, attempts, loop.time())
            if delay is None or faulty >= _FAULTY:
                raise fault.error if isinstance(fault, _Unnumbered) else fault
            self._set_connection("lost")
            await self._pause(delay)

    async def _pause(self, delay_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), delay_s)

    def _delay_s(self, fault: ParleyError, attempts: Attempts, now: float) -> float | None:
        """Return the delay before the next connection, or None if it cannot help."""
        begun = self.stream_id is not None
        if not (isinstance(fault, ConnectionLost | _Unnumbered | _Gap) or _busy(fault, begun=begun)):
            return None
        limits = self._calls.backoff
        within_s = limits.resume_s if begun else limits.begin_s
        return attempts.delay_s(now, within_s=within_s, retry_after=fault.retry_after)

    def _input_lost(self, fault: ParleyError) -> bool:
        """Return whether the server has dropped the stream, because its input broke off."""
        if self.stream_id is None or self._request is None or self._last_id > 1:
            return False
        cut = isinstance(fault, ConnectionLost) and self._input is not None and not self._input.sent
        return cut or fault.status == _NOT_FOUND

    async def _connection(self) -> AsyncGenerator[Event]:
        """Yield the new events of one connection."""
        response = self._response = await self._calls.open(self._next_request())
        try:
            self.stream_id = response.headers.get("X-Service-Stream-Id", self.stream_id)
            self.conversation_id = response.headers.get("X-Service-Conversation-Id", self.conversation_id)
            if self.stream_id is None:
                raise NotUnderstood("the response is not a stream", status=response.status)
            self.opened.set()
            self._set_connection("open")
            parser = SseParser()
            while data := await _read(response):
                for raw in parser.feed(data):
                    if (event := self._new(raw)) is not None:
                        yield event
            if self._ended:
                response.release()  # The connection can be used again.
        finally:
            response.close()

    def _next_request(self) -> Request:
        if self.stream_id is None:
            assert self._request is not None, "a stream without a request has an id"
            return self._request
        headers = {"Last-Event-ID": str(self._last_id)}
        path = f"/bp/ai/stream/{segment(self.stream_id)}"
        return Request(method="GET", path=path, headers=headers, timeout_s=None, silence_s=SILENCE_S)

    def _new(self, raw: SseEvent) -> Event | None:
        """Return the event, or None if it has been read before or is a `ping`. Raises the error of an `error`."""
        if raw.name == "ping":
            return None
        event = read_event(raw)
        number = _number(raw)
        if number is None:
            if isinstance(event, ParleyError):
                raise _Unnumbered(event)
            return event
        if number <= self._last_id:
            return None
        if number > self._last_id + 1:
            raise _Gap(f"event {number} of the stream follows event {self._last_id}")
        self._last_id = number
        if isinstance(event, ParleyError):
            raise event
        self._digest.add(event)
        if isinstance(event, End):
            if event.digest != self._digest.value():
                raise DigestMismatch(self.stream_id)
            self._ended = True
        return event


class _Gap(NotUnderstood):
    """Events are missing. The server still has them, so a resume may bring them."""


class _Unnumbered(ParleyError):
    """The error of a process that has lost the stream. Another process may continue it."""

    def __init__(self, error: ParleyError) -> None:
        super().__init__(error.error_type, error.message, extra=error.extra)
        self.error = error


def _busy(error: ParleyError, *, begun: bool) -> bool:
    """Return whether the server refuses the request only at the moment."""
    if error.status is None:
        return False
    if isinstance(error, NotUnderstood):  # the page of a proxy whose server is being replaced
        return error.status in {502, 503, 504}
    return error.status in {429, 503} or (begun and error.status >= 500)


def _number(raw: SseEvent) -> int | None:
    return None if raw.id is None else int(raw.id)


async def _read(response: ClientResponse) -> bytes:
    """Return what has arrived, or nothing at the end."""
    try:
        return await response.content.readany()
    except (ClientError, TimeoutError, OSError) as error:
        raise lost(error) from error
