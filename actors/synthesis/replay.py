"""Record a speech synthesis for the cache, and replay it from there."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from actors.synthesis.voice import SpokenFile
from storage.conversations.speech_cache import CachedSpeech
from storage.objects import ObjectStore
from storage.objects.contract import ObjectsError
from streams.audio.audio import wav_header
from vendors.calls.attempts import Attempt
from vendors.calls.meter import Meter
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Viseme, Visemes

CACHE_VENDOR = "cache"
"""The vendor name of attempts that replay cached speech. They cost nothing."""
READ_S = 2.0
"""Time limit for reading cached audio. A healthy object store is faster."""
_MAX_BYTES = 16 * 1024 * 1024
_MAX_SCORE_ENTRIES = 20_000


class Recording:
    """A recording of a synthesis.

    `score` holds its items in order: sizes of audio pieces in bytes, and lists of mouth shapes as `(ms, id)`.
    """

    def __init__(self, text: str) -> None:
        self.file = SpokenFile()
        self._text = text
        self.score: list[int | list[tuple[int, int]]] = []
        self.complete = False
        self._bytes = 0

    def add(self, item: SpeechItem) -> bool:
        """Record an item. Return `False` if the recording has become too large for the cache."""
        match item:
            case SpeechFormat():
                self.file.begin(item)
            case AudioBytes(audio):
                out = self.file.add_audio(audio)
                self._add_audio(len(out) if self.file.mime_type == "audio/mpeg" else len(audio))
            case Visemes(visemes):
                self.file.add_visemes(visemes)
                self.score.append([(viseme.offset_ms, viseme.viseme_id) for viseme in visemes])
        return self._bytes <= _MAX_BYTES and len(self.score) + len(self.file.visemes) <= _MAX_SCORE_ENTRIES

    def end(self) -> None:
        self._add_audio(len(self.file.end(self._text)))
        self.complete = not self.file.empty

    def _add_audio(self, size: int) -> None:
        if size:
            self._bytes += size
            self.score.append(size)


def replay(
    strategy: str, objects: ObjectStore, speech: CachedSpeech, audio: bytes | None = None
) -> Attempt[SpeechItem]:
    """Return an attempt that replays `speech`. Unless `audio` is given, it is read when the attempt is opened."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[AsyncIterator[SpeechItem]]:
        stored = await read(objects, speech) if audio is None else audio
        async with aclosing(_items(speech, stored)) as items:
            yield items

    return Attempt(
        strategy=strategy,
        stage="tts",
        vendor=CACHE_VENDOR,
        open=opened,
        is_output=lambda item: isinstance(item, AudioBytes),
        first_output_s=READ_S,
        between_s=READ_S,
        meter=lambda: Meter(ignore_reports=True),
    )


async def read(objects: ObjectStore, speech: CachedSpeech) -> bytes:
    """Read the stored audio, without the header of a WAV file.

    Raises `ObjectsError` if its size does not match the score.
    """
    file = await objects.get(speech.audio_key)
    audio = file[len(wav_header(speech.sample_rate)) :] if speech.mime_type == "audio/wav" else file
    if len(audio) != sum(size for size in speech.score if isinstance(size, int)):
        raise ObjectsError("the stored audio does not match its cache entry")
    return audio


async def _items(speech: CachedSpeech, audio: bytes) -> AsyncGenerator[SpeechItem]:
    yield Usage(0, 0)
    yield SpeechFormat(speech.mime_type, speech.sample_rate)  # type: ignore[arg-type]  # Stored from a `SpeechFormat`.
    offset = 0
    for step in speech.score:
        if isinstance(step, int):
            yield AudioBytes(audio[offset : offset + step])
            offset += step
        else:
            yield Visemes([Viseme(offset_ms, viseme_id) for offset_ms, viseme_id in step])
