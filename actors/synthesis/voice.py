"""Speech synthesis attempts, and the assembly of synthesized audio into complete files."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from actors.clients.strategies import Voice, hedge_of, price_of
from streams.audio.audio import wav_header
from streams.audio.mp3 import Mp3Joiner
from streams.wire.errors import BackendUnavailable, ServiceError
from vendors.calls.attempts import Attempt, failed_attempt
from vendors.calls.meter import Meter
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Viseme
from vendors.speech.guard import Guard, RemainingAttempts, guarded
from vendors.speech.visemes import estimated

_MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of one file. The audio of the longest accepted text is smaller."""


def voice_attempts(voices: Iterable[tuple[str, Voice | ServiceError]], text: str) -> list[Attempt[SpeechItem]]:
    """Return attempts to speak `text`, in order. Slow audio is accepted from the last attempt that can run."""
    remaining = RemainingAttempts()
    return [voice_attempt(name, voice, text, remaining) for name, voice in voices]


def voice_attempt(
    name: str, voice: Voice | ServiceError, text: str, remaining: RemainingAttempts | None = None
) -> Attempt[SpeechItem]:
    """Return an attempt to speak `text`. Its first output is audio that passed the guard.

    Without `remaining`, it is the only attempt. The timeout for the first output includes the time that the guard
    holds audio back.
    """
    if isinstance(voice, ServiceError):
        return failed_attempt(name, "tts", voice)
    among = RemainingAttempts() if remaining is None else remaining
    position = among.register()

    @asynccontextmanager
    async def opened() -> AsyncIterator[AsyncIterator[SpeechItem]]:
        guard = Guard(voice.platform, text, factor=voice.config.min_realtime_factor, remaining=among)
        with among.trying(position):
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
        meter=lambda: Meter(len(text), ignore_reports=True),
        price=price_of(voice.config),
        model=voice.config.model,
    )


class SpokenFile:
    """The audio of one or several syntheses of one voice, as pieces to send and as a complete file to store.

    MP3: tags and info frames are removed, so that the pieces form one file. WAV: the pieces begin with a header of
    unknown length, and the complete file has a header with its actual length.
    """

    def __init__(self) -> None:
        self.format: SpeechFormat | None = None
        self.visemes: list[tuple[int, int]] = []
        self._kept = bytearray()
        self._joiner: Mp3Joiner | None = None
        self._done_ms = 0
        self._spoken: list[tuple[str, int, int]] = []
        """Each text with the start and the end of its audio, in ms."""

    @property
    def mime_type(self) -> str:
        return self.format.mime_type if self.format else "audio/mpeg"

    @property
    def empty(self) -> bool:
        return not self._kept

    @property
    def spoken_ms(self) -> int:
        """Duration of the completed syntheses, in ms."""
        return self._done_ms

    def begin(self, speech_format: SpeechFormat) -> None:
        """Begin a synthesis. Its mouth shapes are relative to the end of the audio so far."""
        if self.format is None:
            self.format = speech_format
            self._joiner = Mp3Joiner() if speech_format.mime_type == "audio/mpeg" else None

    def add_audio(self, audio: bytes) -> bytes:
        """Add `audio` of the current synthesis and return the bytes to send."""
        first = not self._kept
        out = self._joiner.feed(audio) if self._joiner else audio
        self._kept += out
        if len(self._kept) > _MAX_BYTES:
            raise BackendUnavailable("the speech vendor sent too much audio")
        if first and out and self._joiner is None:
            assert self.format is not None, "begin() was not called"
            return wav_header(self.format.sample_rate) + out
        return out

    def end(self, text: str = "") -> bytes:
        """End the synthesis of `text` and return its remaining bytes to send."""
        out = self._joiner.end() if self._joiner else b""
        self._kept += out
        begin_ms, self._done_ms = self._done_ms, self._duration_ms()
        self._spoken.append((text, begin_ms, self._done_ms))
        return out

    def estimate_visemes(self) -> list[tuple[int, int]]:
        """Estimate all mouth shapes from the texts if the vendor sent none. Return and keep the estimates."""
        if self.visemes:
            return []
        self.visemes = [(shape.offset_ms, shape.viseme_id) for shape in estimated(self._spoken)]
        return self.visemes

    def add_visemes(self, visemes: Sequence[Viseme]) -> list[tuple[int, int]]:
        """Add `visemes` of the current synthesis. Return the new mouth shapes with times relative to this file."""
        begin = len(self.visemes)
        for viseme in visemes:
            if not self.visemes or self.visemes[-1][1] != viseme.viseme_id:
                self.visemes.append((self._done_ms + viseme.offset_ms, viseme.viseme_id))
        return self.visemes[begin:]

    def whole(self) -> bytes:
        """Return the complete file."""
        if self.mime_type == "audio/mpeg" or self.format is None:
            return bytes(self._kept)
        return wav_header(self.format.sample_rate, data_bytes=len(self._kept)) + bytes(self._kept)

    def _duration_ms(self) -> int:
        if self._joiner is not None:
            return self._joiner.duration_ms
        rate = self.format.sample_rate if self.format else 1
        return len(self._kept) * 1000 // (2 * rate)
