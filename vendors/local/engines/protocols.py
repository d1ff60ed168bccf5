"""The interfaces of local engines, one Protocol for each capability. `fault`: why an engine cannot be used."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from vendors.protocols import AssessmentRequest, ChatItem, ChatMessage


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Options of a request. An engine ignores those that it does not support."""

    max_tokens: int | None = None
    temperature: float | None = None
    pace_ms: int | None = None


class ChatEngine(Protocol):
    @property
    def fault(self) -> str | None: ...

    def close(self) -> None: ...

    def reply(
        self, messages: Sequence[ChatMessage], options: ChatOptions
    ) -> AbstractAsyncContextManager[AsyncIterator[ChatItem]]: ...


@dataclass(frozen=True, slots=True)
class Spoken:
    """A piece of speech: 16-bit mono PCM, and the phonemes (IPA, or `_` for a pause) that start in it or later.

    Offsets are milliseconds from the start of the complete speech.
    """

    pcm: bytes
    phonemes: Sequence[tuple[str, int]]


class VoiceEngine(Protocol):
    sample_rate: int

    @property
    def fault(self) -> str | None: ...

    def close(self) -> None: ...

    def speak(
        self, text: str, *, voice: str | None, speed: float
    ) -> AbstractAsyncContextManager[AsyncIterator[Spoken]]: ...


@dataclass(frozen=True, slots=True)
class TranscribedSegment:
    start_s: float
    end_s: float
    text: str
    tokens: Sequence[int]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float


@dataclass(frozen=True, slots=True)
class Transcription:
    """The transcript of `seconds` of audio. It has no segments if there was no speech."""

    seconds: float
    segments: Sequence[TranscribedSegment]

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments).strip()


class RecognizerEngine(Protocol):
    @property
    def fault(self) -> str | None: ...

    def close(self) -> None: ...

    async def transcribe(self, audio: bytes, *, prompt: str | None) -> Transcription: ...


@dataclass(frozen=True, slots=True)
class Assessed:
    """The transcript of `seconds` of audio, empty if there was no speech, and the result in vendor A's form."""

    seconds: float
    text: str
    raw: Mapping[str, Any]


class AssessorEngine(Protocol):
    @property
    def fault(self) -> str | None: ...

    def close(self) -> None: ...

    async def assess(self, pcm: bytes, request: AssessmentRequest) -> Assessed:
        """Assess 16-bit mono PCM at 16 kHz."""
        ...
