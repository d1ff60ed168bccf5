"""Streams as apps see them: a turn of a conversation, and text to speech."""

import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Self

from parley_client.calls import Calls
from parley_client.errors import ParleyError
from parley_client.http import Request, segment
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
from parley_client.streams.reader import StreamReader

_NOT_FOUND = 404


class EventStream:
    """An async iterable of the events of a stream, which can be iterated once.

    The request is sent when the iteration begins. After each disconnect it is resumed where it was cut. Whoever
    stops iterating early closes the connection; the server then continues for a minute, unless `interrupt` is
    called.
    """

    def __init__(self, calls: Calls, request: Request, source: Input | None = None) -> None:
        self.end: End | None = None
        """The last event, once it has arrived."""
        self._calls = calls
        self._input = source
        self._reader = StreamReader(calls, request, source)
        self._begun = False

    @property
    def stream_id(self) -> str | None:
        """None until the server has accepted the request."""
        return self._reader.stream_id

    def __aiter__(self) -> AsyncIterator[Event]:
        if self._begun:
            raise RuntimeError("the events of a stream can be iterated once")
        self._begun = True
        return self._events()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    async def finish(self) -> End:
        """Read the stream to its end, for callers that only want the result. Raises `ParleyError`."""
        async for _ in self:
            pass
        assert self.end is not None, "a stream without `end` raises an error"
        return self.end

    def leave(self) -> None:
        """Stop the iteration and the input, and close the connection."""
        self._reader.leave()
        if self._input is not None:
            self._input.stop()

    async def interrupt(self, *, heard_ms: int | None = None) -> None:
        """Cancel the answer. When this returns, what was said is stored and the next turn may begin.

        The iteration ends with an `End` whose `finish_reason` is `canceled`. `heard_ms`: milliseconds of the
        answer's audio that were played; the history keeps the words that were spoken until then. Without it, it
        keeps all.
        """
        if not self._begun:
            self.leave()
            return
        await self._reader.opened.wait()
        if self.stream_id is None:
            self.leave()
            return
        path = f"/bp/ai/stream/{segment(self.stream_id)}"
        try:
            await self._calls.json(
                Request(method="DELETE", path=path, query={"heard_ms": heard_ms}, repeatable=True),
                tries=math.inf,
                within_s=self._calls.backoff.resume_s,
            )
        except ParleyError as error:
            if error.status != _NOT_FOUND:  # It has ended too long ago to be cancelled.
                raise

    async def _events(self) -> AsyncGenerator[Event]:
        if self._input is not None:
            self._input.start(self._reader.disconnect)
        try:
            async with aclosing(self._reader.events()) as events:
                async for event in events:
                    self._note(event)
                    yield event
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

    async def audio(self) -> bytes:
        """Read to the end and return all audio, which is one file. Raises `ParleyError`."""
        pieces = [event.audio async for event in self if isinstance(event, AudioChunk)]
        return b"".join(pieces)

    def _note(self, event: Event) -> None:
        super()._note(event)
        if isinstance(event, AudioFile):
            self.file = event


class Turn(EventStream):
    """A turn of a conversation: what the user says, and the answer as text and audio."""

    def __init__(self, calls: Calls, request: Request, source: Input | None = None) -> None:
        super().__init__(calls, request, source)
        self.user_input: str | None = None
        """What the user has said, once it is recognized."""
        self._paragraphs: dict[int, str] = {}

    @property
    def conversation_id(self) -> str | None:
        """None until the server has accepted the request."""
        return self._reader.conversation_id

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
