"""One synthesis as whole files need it: audio joined over sentences, its header, its mouth shapes."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from actors.strategies import Voice, hedge_of, price_of
from streams.audio import wav_header
from streams.mp3 import Mp3Joiner
from streams.wire.errors import ServiceError
from vendors.fallback import Attempt, failed_attempt
from vendors.meter import Meter
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Viseme
from vendors.speech.guard import Guard, RemainingAttempts, guarded
from vendors.speech.visemes import estimated

_MOST_BYTES = 64 * 1024 * 1024
"""Of one file: more than any text that may be spoken comes to."""


def voice_attempts(voices: Iterable[tuple[str, Voice | ServiceError]], text: str) -> list[Attempt[SpeechItem]]:
    """Attempts to speak `text`, in order: audio of the last one that can be asked is never too slow."""
    remaining = RemainingAttempts()
    return [voice_attempt(name, voice, text, remaining) for name, voice in voices]


def voice_attempt(
    name: str, voice: Voice | ServiceError, text: str, remaining: RemainingAttempts | None = None
) -> Attempt[SpeechItem]:
    """An attempt to speak `text`; its first output is audio that was found good, not what announces it.

    Without `remaining` it is the only one. The time for the first output covers the hold of the guard.
    """
    if isinstance(voice, ServiceError):
        return failed_attempt(name, "tts", voice)
    among = RemainingAttempts() if remaining is None else remaining
    place = among.place()

    @asynccontextmanager
    async def opened() -> AsyncIterator[AsyncIterator[SpeechItem]]:
        guard = Guard(voice.platform, text, factor=voice.config.min_realtime_factor, remaining=among)
        with among.trying(place):
            async with guarded(voice.synthesizer.speak(text), guard) as items:
                yield items

    return Attempt(
        strategy=name,
        stage="tts",
        vendor=voice.platform,
        open=opened,
        is_output=lambda item: isinstance(item, AudioBytes) and bool(item.audio),
        first_output_s=voice.config.waits.first_output_s,
        between_s=voice.config.waits.between_s,
        hedge=hedge_of(voice.config),
        gate=voice.gate,
        meter=lambda: Meter(len(text), by_us=True),
        price=price_of(voice.config),
    )


class SpokenFile:
    """The audio of one file, from one or several syntheses of one voice: pieces to send, and the file to keep.

    MP3: later tags and info frames are taken out. WAV: a streamed header goes first, the kept file has true sizes.
    """

    def __init__(self) -> None:
        self.format: SpeechFormat | None = None
        self.visemes: list[tuple[int, int]] = []
        self._kept = bytearray()
        self._joiner: Mp3Joiner | None = None
        self._done_ms = 0
        self._spoken: list[tuple[str, int, int]] = []
        """Texts, and where their audio begins and ends."""

    @property
    def mime_type(self) -> str:
        return self.format.mime_type if self.format else "audio/mpeg"

    @property
    def empty(self) -> bool:
        return not self._kept

    @property
    def spoken_ms(self) -> int:
        """The length of the syntheses that are whole."""
        return self._done_ms

    def begin(self, speech_format: SpeechFormat) -> None:
        """A synthesis begins: its times count from the audio so far."""
        if self.format is None:
            self.format = speech_format
            self._joiner = Mp3Joiner() if speech_format.mime_type == "audio/mpeg" else None

    def piece(self, audio: bytes) -> bytes:
        """What is to be sent of `audio`."""
        first = not self._kept
        out = self._joiner.feed(audio) if self._joiner else audio
        self._kept += out
        if len(self._kept) > _MOST_BYTES:
            raise ServiceError("the voice does not end", error_type="backend unavailable")
        if first and out and self._joiner is None:
            assert self.format is not None, "a synthesis begins with its format"
            return wav_header(self.format.sample_rate) + out
        return out

    def end(self, text: str = "") -> bytes:
        """The synthesis of `text` is over: what is still to be sent of it."""
        out = self._joiner.end() if self._joiner else b""
        self._kept += out
        begin_ms, self._done_ms = self._done_ms, self._duration_ms()
        self._spoken.append((text, begin_ms, self._done_ms))
        return out

    def estimate(self) -> list[tuple[int, int]]:
        """All its mouth shapes by its texts, where nothing told their times; they are in the file from then on."""
        if self.visemes:
            return []
        self.visemes = [(shape.offset_ms, shape.viseme_id) for shape in estimated(self._spoken)]
        return self.visemes

    def shapes(self, visemes: Sequence[Viseme]) -> list[tuple[int, int]]:
        """`visemes` of the running synthesis as they lie in this file."""
        begin = len(self.visemes)
        for viseme in visemes:
            if not self.visemes or self.visemes[-1][1] != viseme.viseme_id:
                self.visemes.append((self._done_ms + viseme.offset_ms, viseme.viseme_id))
        return self.visemes[begin:]

    def whole(self) -> bytes:
        """The file to keep."""
        if self.mime_type == "audio/mpeg" or self.format is None:
            return bytes(self._kept)
        return wav_header(self.format.sample_rate, data_bytes=len(self._kept)) + bytes(self._kept)

    def _duration_ms(self) -> int:
        if self._joiner is not None:
            return self._joiner.duration_ms
        rate = self.format.sample_rate if self.format else 1
        return len(self._kept) * 1000 // (2 * rate)
