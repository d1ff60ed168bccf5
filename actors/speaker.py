"""Speaks an answer while it is written: sentences in, audio events out, several in flight, in order (§6.1)."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import structlog

from actors.context import StreamContext
from actors.playback import Playback
from actors.speech_store import Kept, keep
from actors.strategies import Voice
from actors.utterance import Candidate, uttered
from actors.voice import SpokenFile
from streams.events import (
    AssistantOutputAudio,
    AssistantOutputAudioChunk,
    AssistantOutputViseme,
    FirstSentenceEnabled,
    error_content,
)
from streams.sentences import Sentences, merged, speakable
from streams.tasks import background
from streams.wire.errors import ServiceError
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Visemes

log = structlog.get_logger()

_PIECES_AHEAD = 64
"""Of one synthesis, waiting for their turn."""
_PARAGRAPHS_TO_STORE = 8


@dataclass(slots=True)
class _Said:
    """Sentences that are synthesised together, and what has come of them. `None` ends the items."""

    index: int
    text: str
    written: str
    """As the answer has it, with what cannot be spoken."""
    items: asyncio.Queue[SpeechItem | ServiceError | None] = field(
        default_factory=lambda: asyncio.Queue(_PIECES_AHEAD)
    )


@dataclass(frozen=True, slots=True)
class _ParagraphEnd:
    index: int


class Speaker:
    """One voice for one answer, chosen by its first sentence. It fails alone: the text goes on without it.

    `feed`, `close` and `finish` never wait; `run` does the work and ends once all is spoken and stored.
    """

    def __init__(
        self,
        ctx: StreamContext,
        candidates: Sequence[Candidate],
        *,
        folder: str,
        language: str,
        merge_characters: int,
        at_once: int,
    ) -> None:
        self.failure: dict[str, Any] | None = None
        self.stored: dict[int, Kept] = {}
        self.chosen: tuple[str, Voice] | None = None
        self._ctx = ctx
        self._candidates = dict(candidates)
        self._folder = folder
        self._merge_characters = merge_characters
        self._at_once = at_once
        self._sentences = Sentences(language)
        self._waiting: deque[tuple[int, str] | _ParagraphEnd] = deque()
        self._more = asyncio.Event()
        self._finished = False
        self._begun = False
        self._room = asyncio.Semaphore(2 * at_once)
        self._order: asyncio.Queue[_Said | _ParagraphEnd | None] = asyncio.Queue()
        self._to_store: asyncio.Queue[tuple[int, SpokenFile] | None] = asyncio.Queue(_PARAGRAPHS_TO_STORE)
        self._file = SpokenFile()
        self._announced = -1
        self._unspoken = (0, "")
        self._before_ms = 0
        """The length of the paragraphs before this one."""
        self.playback = Playback()

    def feed(self, index: int, text: str) -> None:
        """Take a piece of paragraph `index`."""
        for sentence in self._sentences.feed(text):
            self._say(index, sentence)

    def close(self, index: int) -> None:
        """Paragraph `index` is whole."""
        for sentence in self._sentences.finish():
            self._say(index, sentence)
        self._put(_ParagraphEnd(index))

    def finish(self) -> None:
        """No more text will come."""
        self._finished = True
        self._more.set()

    async def run(self) -> None:
        """Speak what comes until all of it is said and kept, or the voice fails."""
        async with AsyncExitStack() as stack:
            storing = await stack.enter_async_context(background(self._store()))
            delivering = await stack.enter_async_context(background(self._deliver()))
            speaking = [
                await stack.enter_async_context(background(self._synthesise())) for _ in range(self._at_once)
            ]
            await delivering
            await self._to_store.put(None)
            await storing
            if self.failure is None:
                await asyncio.wait(speaking)  # what was said last may still be put into the cache

    def _say(self, index: int, sentence: str) -> None:
        self._ctx.receipt.mark("first_sentence")
        self._put((index, sentence))

    def _put(self, entry: tuple[int, str] | _ParagraphEnd) -> None:
        if self.failure is None:
            self._waiting.append(entry)
            self._more.set()

    async def _synthesise(self) -> None:
        """Take what waits and have it spoken; several of these run side by side, the order is that of taking."""
        while True:
            await self._room.acquire()
            said = await self._next()
            if said is None:
                return
            try:
                await self._speak(said)
            except ServiceError as error:
                await said.items.put(error)
            except Exception:
                log.exception("speech.crashed", stream_id=self._ctx.stream_id)
                await said.items.put(ServiceError("the server failed"))

    async def _next(self) -> _Said | None:
        while True:
            while self._waiting and isinstance(self._waiting[0], _ParagraphEnd):
                self._order.put_nowait(self._waiting.popleft())  # type: ignore[arg-type]
            if self._waiting and (not self._begun or self.chosen is not None):
                said = self._take()
                if said is not None:
                    self._begun = True
                    self._order.put_nowait(said)
                    return said
            elif self._finished and not self._waiting:
                self._order.put_nowait(None)
                return None
            else:
                self._more.clear()
                await self._more.wait()

    def _take(self) -> _Said | None:
        """The next sentences of one paragraph, the very first alone; none where there is nothing to say."""
        run: list[str] = []
        index = 0
        for entry in self._waiting:
            if isinstance(entry, _ParagraphEnd) or (run and entry[0] != index):
                break
            index = entry[0]
            run.append(entry[1])
        text, count = merged(run, self._merge_characters if self._begun else 0)
        for _ in range(count):
            self._waiting.popleft()
        before, self._unspoken = self._unspoken, (index, "")
        written = (before[1] if before[0] == index else "") + "".join(run[:count])
        if text := speakable(text):
            return _Said(index, text, written)
        self._unspoken = (index, written)
        return None

    async def _speak(self, said: _Said) -> None:
        if self.chosen is None:
            voices: list[Candidate] = list(self._candidates.items())
        else:
            voices = [self.chosen, self.chosen]  # tried once more, on the same voice
        async with uttered(self._ctx, said.text, voices) as utterance:
            if self.chosen is None:
                voice = self._candidates[utterance.strategy]
                assert isinstance(voice, Voice), "a fault is no winner"
                self.chosen = (utterance.strategy, voice)
                self._more.set()
            async for item in utterance.items:
                await said.items.put(item)
            await said.items.put(None)
            await utterance.share()

    async def _deliver(self) -> None:
        while (entry := await self._order.get()) is not None:
            if isinstance(entry, _ParagraphEnd):
                await self._end_paragraph(entry.index)
                continue
            try:
                await self._send(entry)
            except ServiceError as error:
                self._fail(error, entry.index)
                return
            self._room.release()

    async def _send(self, said: _Said) -> None:
        """Give out one synthesis as it comes: all that is ready in one event, mouth shapes before their audio."""
        self.playback.begin(said.index, said.written, self._before_ms + self._file.spoken_ms)
        before = len(self._file.visemes)
        while True:
            ready = await _ready(said.items)
            audio = b""
            shapes: list[tuple[int, int]] = []
            for item in ready:
                match item:
                    case SpeechFormat():
                        self._file.begin(item)
                    case AudioBytes():
                        audio += self._file.piece(item.audio)
                    case Visemes():
                        shapes += self._file.shapes(item.visemes)
            if ready[-1] is None:
                audio += self._file.end(said.text)
                spoken = [(self._before_ms + at, shape) for at, shape in self._file.visemes[before:]]
                self.playback.end(self._before_ms + self._file.spoken_ms, spoken)
            await self._emit(said.index, audio, shapes)
            if isinstance(ready[-1], ServiceError):
                raise ready[-1]
            if ready[-1] is None:
                return

    async def _emit(self, index: int, audio: bytes, shapes: list[tuple[int, int]]) -> None:
        if shapes and self.chosen and self.chosen[1].need_viseme:
            await self._ctx.emit(AssistantOutputViseme(index, shapes))
        if not audio:
            return
        if not self._ctx.receipt.reached("first_audio"):
            await self._ctx.emit(FirstSentenceEnabled())
            self._ctx.receipt.mark("first_audio")
        if self._announced == index or self._file.format is None:
            await self._ctx.emit(AssistantOutputAudioChunk(index, audio))
        else:
            self._announced = index
            told = self._file.format
            await self._ctx.emit(AssistantOutputAudioChunk(index, audio, told.mime_type, told.sample_rate))

    async def _end_paragraph(self, index: int) -> None:
        file, self._file = self._file, SpokenFile()
        self._before_ms += file.spoken_ms
        if not file.empty:
            if self.chosen and self.chosen[1].need_viseme and (shapes := file.estimate()):
                await self._ctx.emit(AssistantOutputViseme(index, shapes, estimated=True))
            await self._to_store.put((index, file))

    async def _store(self) -> None:
        """Keep paragraphs as they are whole; the next one's audio does not wait for it."""
        while (entry := await self._to_store.get()) is not None:
            index, file = entry
            need_viseme = self.chosen is not None and self.chosen[1].need_viseme
            try:
                kept = await keep(
                    self._ctx.resources.objects, f"{self._folder}/{index}", file, need_viseme=need_viseme
                )
            except ServiceError as error:
                self._fail(error, index)
                continue
            self.stored[index] = kept
            await self._ctx.emit(AssistantOutputAudio(index, kept.audio_url, file.mime_type, kept.viseme_url))

    def _fail(self, error: ServiceError, index: int) -> None:
        if self.failure is None:
            log.warning("speech.failed", stream_id=self._ctx.stream_id, index=index, error=str(error))
            told = error_content(error)
            if len(attempts := told["extra"].get("attempts", ())) == 1:
                told = attempts[0]  # the one voice's own reason says more
            self.failure = {"error_type": told["error_type"], "message": told["message"], "index": index}
        self._waiting.clear()


async def _ready(
    items: asyncio.Queue[SpeechItem | ServiceError | None],
) -> list[SpeechItem | ServiceError | None]:
    """At least one item, and all that are there."""
    ready = [await items.get()]
    while not items.empty():
        ready.append(items.get_nowait())
    return ready
