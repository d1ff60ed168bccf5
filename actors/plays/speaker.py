"""Speak an answer while it is generated: synthesize several sentences at once, and deliver them in order (§6.1)."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import structlog

from actors.clients.strategies import Voice
from actors.plays.playback import Playback
from actors.plays.utterance import Candidate, open_utterance
from actors.runtime.context import StreamContext
from actors.synthesis.store import StoredSpeech, store_speech
from actors.synthesis.voice import SpokenFile
from streams.events import (
    AssistantOutputAudio,
    AssistantOutputAudioChunk,
    AssistantOutputViseme,
    FirstSentenceEnabled,
    error_content,
)
from streams.spoken.sentences import SpokenSentence, SpokenSentences, merged
from streams.tasks import background
from streams.wire.errors import InternalError, ServiceError
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Visemes

log = structlog.get_logger()

_MAX_QUEUED_ITEMS = 64
"""Items of one synthesis that may wait for the delivery of earlier ones."""
_MAX_UNSTORED_PARAGRAPHS = 8


@dataclass(slots=True)
class _Synthesis:
    """Sentences of paragraph `index` that are synthesized together. `items` is the result; `None` marks its end."""

    index: int
    text: str
    written: str
    """The text as it appears in the answer, including markup that is not spoken."""
    items: asyncio.Queue[SpeechItem | ServiceError | None] = field(
        default_factory=lambda: asyncio.Queue(_MAX_QUEUED_ITEMS)
    )


@dataclass(frozen=True, slots=True)
class _ParagraphEnd:
    index: int


class Speaker:
    """Speaks one answer with one voice: the first candidate that can speak its first sentence.

    `feed`, `close` and `finish` never block. `run` does the work, and returns when everything is spoken and stored.
    If the voice fails, `failure` is set and the answer continues as text.
    """

    def __init__(
        self,
        ctx: StreamContext,
        candidates: Sequence[Candidate],
        *,
        folder: str,
        language: str,
        merge_characters: int,
        concurrency: int,
    ) -> None:
        self.failure: dict[str, Any] | None = None
        self.stored: dict[int, StoredSpeech] = {}
        """Stored audio by paragraph."""
        self.chosen: tuple[str, Voice] | None = None
        """The name and the voice of the chosen speech strategy."""
        self._ctx = ctx
        self._candidates = dict(candidates)
        self._folder = folder
        self._merge_characters = merge_characters
        self._concurrency = concurrency
        self._sentences = SpokenSentences(language)
        self._waiting: deque[tuple[int, SpokenSentence] | _ParagraphEnd] = deque()
        self._more = asyncio.Event()
        self._finished = False
        self._begun = False
        """Whether the first sentence has been taken."""
        self._room = asyncio.Semaphore(2 * concurrency)
        """Limits the syntheses that have started and are not delivered."""
        self._order: asyncio.Queue[_Synthesis | _ParagraphEnd | None] = asyncio.Queue()
        self._to_store: asyncio.Queue[tuple[int, SpokenFile] | None] = asyncio.Queue(_MAX_UNSTORED_PARAGRAPHS)
        self._file = SpokenFile()
        self._announced = -1
        """The paragraph whose audio format was sent last."""
        self._unspoken = (0, "")
        """Sentences of a paragraph without speakable text. The `written` of the next synthesis begins with them."""
        self._before_ms = 0
        """Duration of the audio of all previous paragraphs, in ms."""
        self.playback = Playback()

    def feed(self, index: int, text: str) -> None:
        """Add text to paragraph `index`."""
        for sentence in self._sentences.feed(text):
            self._add_sentence(index, sentence)

    def close(self, index: int) -> None:
        """End paragraph `index`."""
        for sentence in self._sentences.finish():
            self._add_sentence(index, sentence)
        self._add(_ParagraphEnd(index))

    def finish(self) -> None:
        """End the answer."""
        self._finished = True
        self._more.set()

    async def run(self) -> None:
        """Speak the answer until all of it is delivered and stored, or the voice fails."""
        async with AsyncExitStack() as stack:
            storing = await stack.enter_async_context(background(self._store()))
            delivering = await stack.enter_async_context(background(self._deliver()))
            speaking = [
                await stack.enter_async_context(background(self._synthesize())) for _ in range(self._concurrency)
            ]
            await delivering
            await self._to_store.put(None)
            await storing
            if self.failure is None:
                await asyncio.wait(speaking)  # The last sentences may still be written to the cache.

    def _add_sentence(self, index: int, sentence: SpokenSentence) -> None:
        if sentence.text:
            self._ctx.receipt.mark("first_sentence")
        self._add((index, sentence))

    def _add(self, entry: tuple[int, SpokenSentence] | _ParagraphEnd) -> None:
        if self.failure is None:
            self._waiting.append(entry)
            self._more.set()

    async def _synthesize(self) -> None:
        """Synthesize waiting sentences. Several such tasks run at once. Audio is delivered in order of the text."""
        while True:
            await self._room.acquire()
            synthesis = await self._next_synthesis()
            if synthesis is None:
                return
            try:
                await self._speak(synthesis)
            except ServiceError as error:
                await synthesis.items.put(error)
            except Exception:
                log.exception("speech.crashed", stream_id=self._ctx.stream_id)
                await synthesis.items.put(InternalError())

    async def _next_synthesis(self) -> _Synthesis | None:
        """Wait for sentences, and put their synthesis into the order of delivery. Return `None` after the last."""
        while True:
            while self._waiting and isinstance(self._waiting[0], _ParagraphEnd):
                self._order.put_nowait(self._waiting.popleft())  # type: ignore[arg-type]
            # The first sentence chooses the voice, and all others wait for that.
            if self._waiting and (not self._begun or self.chosen is not None):
                synthesis = self._take_sentences()
                if synthesis is not None:
                    self._begun = True
                    self._order.put_nowait(synthesis)
                    return synthesis
            elif self._finished and not self._waiting:
                self._order.put_nowait(None)
                return None
            else:
                self._more.clear()
                await self._more.wait()

    def _take_sentences(self) -> _Synthesis | None:
        """Take the next sentences of one paragraph. The first sentence of the answer is taken alone.

        Return `None` if the sentences contain nothing speakable.
        """
        run: list[SpokenSentence] = []
        index = 0
        for entry in self._waiting:
            if isinstance(entry, _ParagraphEnd) or (run and entry[0] != index):
                break
            index = entry[0]
            run.append(entry[1])
        sentence, count = merged(run, self._merge_characters if self._begun else 0)
        for _ in range(count):
            self._waiting.popleft()
        unspoken, self._unspoken = self._unspoken, (index, "")
        written = (unspoken[1] if unspoken[0] == index else "") + sentence.written
        if sentence.text:
            return _Synthesis(index, sentence.text, written)
        self._unspoken = (index, written)
        return None

    async def _speak(self, synthesis: _Synthesis) -> None:
        if self.chosen is None:
            voices: list[Candidate] = list(self._candidates.items())
        else:
            voices = [self.chosen, self.chosen]  # One retry with the same voice.
        async with open_utterance(self._ctx, synthesis.text, voices) as utterance:
            if self.chosen is None:
                voice = self._candidates[utterance.strategy]
                assert isinstance(voice, Voice), "a broken voice cannot win"
                self.chosen = (utterance.strategy, voice)
                self._more.set()
            async for item in utterance.items:
                await synthesis.items.put(item)
            await synthesis.items.put(None)
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

    async def _send(self, synthesis: _Synthesis) -> None:
        """Emit one synthesis as it arrives. All available audio goes into one event, after its mouth shapes."""
        self.playback.begin(synthesis.index, synthesis.written, self._before_ms + self._file.spoken_ms)
        first_viseme = len(self._file.visemes)
        while True:
            ready = await _ready(synthesis.items)
            audio = b""
            shapes: list[tuple[int, int]] = []
            for item in ready:
                match item:
                    case SpeechFormat():
                        self._file.begin(item)
                    case AudioBytes():
                        audio += self._file.add_audio(item.audio)
                    case Visemes():
                        shapes += self._file.add_visemes(item.visemes)
            if ready[-1] is None:
                audio += self._file.end(synthesis.text)
                spoken = [(self._before_ms + ms, shape) for ms, shape in self._file.visemes[first_viseme:]]
                self.playback.end(self._before_ms + self._file.spoken_ms, spoken)
            await self._emit(synthesis.index, audio, shapes)
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
            audio_format = self._file.format
            await self._ctx.emit(
                AssistantOutputAudioChunk(index, audio, audio_format.mime_type, audio_format.sample_rate)
            )

    async def _end_paragraph(self, index: int) -> None:
        file, self._file = self._file, SpokenFile()
        self._before_ms += file.spoken_ms
        if not file.empty:
            if self.chosen and self.chosen[1].need_viseme and (shapes := file.estimate_visemes()):
                await self._ctx.emit(AssistantOutputViseme(index, shapes, estimated=True))
            await self._to_store.put((index, file))

    async def _store(self) -> None:
        """Store paragraphs when they are complete. The audio of the next paragraph does not wait for that."""
        while (entry := await self._to_store.get()) is not None:
            index, file = entry
            need_viseme = self.chosen is not None and self.chosen[1].need_viseme
            try:
                stored = await store_speech(
                    self._ctx.resources.objects, f"{self._folder}/{index}", file, need_viseme=need_viseme
                )
            except ServiceError as error:
                self._fail(error, index)
                continue
            self.stored[index] = stored
            await self._ctx.emit(AssistantOutputAudio(index, stored.audio_url, file.mime_type, stored.viseme_url))

    def _fail(self, error: ServiceError, index: int) -> None:
        if self.failure is None:
            log.warning("speech.failed", stream_id=self._ctx.stream_id, index=index, error=str(error))
            content = error_content(error, in_full=self._ctx.resources.tells_config_faults)
            if len(attempts := content["extra"].get("attempts", ())) == 1:
                content = attempts[0]  # The error of the only voice is more specific.
            self.failure = {"error_type": content["error_type"], "message": content["message"], "index": index}
        self._waiting.clear()


async def _ready(
    items: asyncio.Queue[SpeechItem | ServiceError | None],
) -> list[SpeechItem | ServiceError | None]:
    """Wait for an item. Return it with all further items that are already in the queue."""
    ready = [await items.get()]
    while not items.empty():
        ready.append(items.get_nowait())
    return ready
