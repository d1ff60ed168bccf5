"""What the engines of this machine can do, one Protocol a capability. `fault`: why it cannot, after all."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from vendors.protocols import AssessmentRequest, ChatItem, ChatMessage


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What a request may set; an engine takes what it knows and leaves the rest."""

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
    """A piece of speech: 16-bit mono PCM, and the phonemes (IPA; `_` a pause) that begin in it or behind it.

    Their offsets are milliseconds from the start of the whole speech.
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
    """What was said in `seconds` of audio; no segments where nobody spoke."""

    seconds: float
    segments: Sequence[TranscribedSegment]

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments).strip()


class EarEngine(Protocol):
    @property
    def fault(self) -> str | None: ...

    def close(self) -> None: ...

    async def transcribe(self, audio: bytes, *, prompt: str | None) -> Transcription: ...


@dataclass(frozen=True, slots=True)
class Assessed:
    """What was understood in `seconds` of audio, and the result in the form of vendor A; no text: nothing was."""

    seconds: float
    text: str
    raw: Mapping[str, Any]


class AssessorEngine(Protocol):
    @property
    def fault(self) -> str | None: ...

    def close(self) -> None: ...

    async def assess(self, pcm: bytes, request: AssessmentRequest) -> Assessed:
        """Of 16-bit mono PCM at 16 kHz."""
        ...
