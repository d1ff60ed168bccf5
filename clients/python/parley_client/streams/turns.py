"""Streams as apps see them: a turn of a conversation, and text to speech."""

import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Self

from parley_client.calls import Calls
from parley_client.errors import ParleyError
from parley_client.http import Request, segment
from parley_client.numbers import rounded
from parley_client.streams.events import (
    AudioChunk,
    AudioFile,
    End,
    EndOfSpeech,
    Event,
    Restart,
    TextChunk,
    UserInput,
)
from parley_client.streams.input import Input
from parley_client.streams.reader import ConnectionState, OnConnection, StreamReader

_NOT_FOUND = 404
_LEFT = "the stream was left before its end"
_READ = "the events of a stream can be read once"
_UNSENT = "the stream was interrupted before it was sent"


class EventStream:
    """An async iterable of the events of a stream, which can be iterated once.

    The request is sent when the iteration begins. After each disconnect it is resumed where it was cut. Whoever
    stops iterating early closes the connection; the server then continues for a minute, unless `interrupt` is
    called.
    """

    def __init__(
        self,
        calls: Calls,
        origin: Request | str,
        source: Input | None = None,
        on_connection: OnConnection | None = None,
    ) -> None:
        self.end: End | None = None
        """The last event, once it has arrived."""
        self._calls = calls
        self._input = source
        self._reader = StreamReader(calls, origin, source, on_connection)
        self._begun = False
        self._refusal: str | None = None
        """Why there are no events to read, unless they are being read."""

    @property
    def stream_id(self) -> str | None:
        """None until the server has accepted the request."""
        return self._reader.stream_id

    def __aiter__(self) -> AsyncIterator[Event]:
        self._check_unread()
        return self._events()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    async def finish(self) -> End:
        """Read the stream to its end, for callers that only want the result. Raises `ParleyError`."""
        if self.end is None:
            async for _ in self:
                pass
        if self.end is None:
            raise _refused(self._refusal or _LEFT)
        return self.end

    def leave(self) -> None:
        """Stop the iteration and the input, and close the connection. There is no result then."""
        if self.end is None and self._refusal is None:
            self._refusal = _LEFT
        self._reader.leave()
        if self._input is not None:
            self._input.stop()

    async def interrupt(self, *, heard_ms: float | None = None) -> None:
        """Cancel the answer. When this returns, what was said is stored and the next turn may begin.

        The iteration ends with an `End` whose `finish_reason` is `canceled`. `heard_ms`: milliseconds of the
        answer's audio that were played; the history keeps the words that were spoken until then. Without it, it
        keeps all.
        """
        heard = None if heard_ms is None else rounded("heard_ms", heard_ms)
        if self._begun and self.stream_id is None:
            await self._reader.opened.wait()
        if self.stream_id is None:
            self._refusal = self._refusal or (None if self._begun else _UNSENT)
            self.leave()
            return
        path = f"/bp/ai/stream/{segment(self.stream_id)}"
        try:
            await self._calls.json(
                Request(method="DELETE", path=path, query={"heard_ms": heard}, repeatable=True),
                tries=math.inf,
                within_s=self._calls.backoff.resume_s,
            )
        except ParleyError as error:
            if error.status != _NOT_FOUND:  # It has ended too long ago to be cancelled.
                raise

    def _check_unread(self) -> None:
        if self._refusal is not None or self._begun:
            raise _refused(self._refusal or _READ)

    async def _events(self) -> AsyncGenerator[Event]:
        self._check_unread()
        self._begun = True
        if self._input is not None:
            self._input.start(self._reader.disconnect)
        try:
            async with aclosing(self._reader.events()) as events:
                async for event in events:
                    self._note(event)
                    yield event
        except GeneratorExit:  # The loop was left.
            if self.end is None:
                self._refusal = self._refusal or _LEFT
            raise
        finally:
            if self._input is not None:
                self._input.stop()

    def _note(self, event: Event) -> None:
        if isinstance(event, End):
            self.end = event


class Speech(EventStream):
    """Text to speech: the audio in pieces, as `AudioChunk`, then a link to all of it, as `AudioFile`."""

    def __init__(self, calls: Calls, request: Request) -> None:
        super().__init__(calls, request)
        self.file: AudioFile | None = None
        """The link to the stored audio, once it has arrived. It is valid for 24 hours and needs no headers."""
        self._pieces: list[bytes] = []

    async def audio(self) -> bytes:
        """Read to the end and return all audio, which is one file. Raises `ParleyError`."""
        await self.finish()
        return b"".join(self._pieces)

    def _note(self, event: Event) -> None:
        super()._note(event)
        match event:
            case AudioChunk(audio=audio):
                self._pieces.append(audio)
            case AudioFile():
                self.file = event


class Turn(EventStream):
    """A turn of a conversation: what the user says, and the answer as text and audio."""

    def __init__(
        self,
        calls: Calls,
        origin: Request | str,
        source: Input | None = None,
        on_connection: OnConnection | None = None,
    ) -> None:
        super().__init__(calls, origin, source, on_connection)
        self.user_input: str | None = None
        """What the user has said, once it is recognized."""
        self._paragraphs: dict[int, str] = {}

    @property
    def conversation_id(self) -> str | None:
        """None until the server has accepted the request."""
        return self._reader.conversation_id

    @property
    def connection(self) -> ConnectionState:
        """The state of the connection. A lost one is restored by itself."""
        return self._reader.connection

    def drop_connection(self) -> None:
        """Close the connection, to see what happens on an unreliable network. The turn is resumed by itself."""
        self._reader.disconnect()

    @property
    def text(self) -> str:
        """The answer as far as it has arrived, with a blank line between paragraphs."""
        return "\n\n".join(text for _, text in sorted(self._paragraphs.items()))

    def _note(self, event: Event) -> None:
        super()._note(event)
        match event:
            case EndOfSpeech() if self._input is not None:
                self._input.close()
            case UserInput(text=text):
                self.user_input = text
            case TextChunk(index=index, text=text):
                self._paragraphs[index] = self._paragraphs.get(index, "") + text
            case Restart(from_index=first):
                self._paragraphs = {index: text for index, text in self._paragraphs.items() if index < first}


def _refused(why: str) -> ParleyError:
    return ParleyError("invalid_operation", f"invalid_operation: {why}")
