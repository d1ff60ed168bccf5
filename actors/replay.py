"""A synthesis as it is written down, and as it is said again."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from actors.voice import SpokenFile
from storage.objects import ObjectStore
from storage.speech_cache import CachedSpeech
from streams.audio import wav_header
from streams.wire.errors import StoreError
from vendors.fallback import Attempt
from vendors.meter import Meter
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Viseme, Visemes

CACHE_VENDOR = "cache"
"""Who is asked for what is said again, as attempts tell it: it costs nothing."""
READ_S = 2.0
"""Longer than any sound store takes: a later answer is as good as none."""
_LARGEST_BYTES = 16 * 1024 * 1024
_LONGEST_SCORE = 20_000


class Recording:
    """A synthesis as it is written down to be said again."""

    def __init__(self, text: str) -> None:
        self.file = SpokenFile()
        self._text = text
        self.score: list[int | list[tuple[int, int]]] = []
        self.whole = False
        self._bytes = 0

    def take(self, item: SpeechItem) -> bool:
        """Whether it still has a size that may be cached."""
        match item:
            case SpeechFormat():
                self.file.begin(item)
            case AudioBytes(audio):
                out = self.file.piece(audio)
                self._note(len(out) if self.file.mime_type == "audio/mpeg" else len(audio))
            case Visemes(visemes):
                self.file.shapes(visemes)
                self.score.append([(viseme.offset_ms, viseme.viseme_id) for viseme in visemes])
        return self._bytes <= _LARGEST_BYTES and len(self.score) + len(self.file.visemes) <= _LONGEST_SCORE

    def end(self) -> None:
        self._note(len(self.file.end(self._text)))
        self.whole = not self.file.empty

    def _note(self, size: int) -> None:
        if size:
            self._bytes += size
            self.score.append(size)


def replay(
    strategy: str, objects: ObjectStore, speech: CachedSpeech, audio: bytes | None = None
) -> Attempt[SpeechItem]:
    """An attempt that says `speech` again; its audio is read when it is opened, unless it is given."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[AsyncIterator[SpeechItem]]:
        said = await read(objects, speech) if audio is None else audio
        async with aclosing(_items(speech, said)) as items:
            yield items

    return Attempt(
        strategy=strategy,
        stage="tts",
        vendor=CACHE_VENDOR,
        open=opened,
        is_output=lambda item: isinstance(item, AudioBytes),
        first_output_s=READ_S,
        between_s=READ_S,
        meter=lambda: Meter(by_us=True),
    )


async def read(objects: ObjectStore, speech: CachedSpeech) -> bytes:
    """The audio as the score counts it: of a WAV the samples alone."""
    whole = await objects.get(speech.audio_key)
    audio = whole[len(wav_header(speech.sample_rate)) :] if speech.mime_type == "audio/wav" else whole
    if len(audio) != sum(size for size in speech.score if isinstance(size, int)):
        raise StoreError("the stored audio is not what was kept", error_type="internal")
    return audio


async def _items(speech: CachedSpeech, audio: bytes) -> AsyncGenerator[SpeechItem]:
    yield Usage(0, 0)
    yield SpeechFormat(speech.mime_type, speech.sample_rate)  # type: ignore[arg-type]  # one of the two, as kept
    at = 0
    for step in speech.score:
        if isinstance(step, int):
            yield AudioBytes(audio[at : at + step])
            at += step
        else:
            yield Visemes([Viseme(offset_ms, viseme_id) for offset_ms, viseme_id in step])
