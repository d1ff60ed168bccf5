"""What the house asks of vendors, one Protocol a capability. Read this page first.

Whatever streams is **an async context manager that gives an async iterator**: entering it sends the
request and holds until the vendor accepted it, leaving it closes the connection, whoever leaves and why.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Role
    content: str


@dataclass(slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What the vendor says it used. Tokens for language models; code points, whole seconds elsewhere."""

    input_token: int
    output_token: int


FinishReason = Literal["stop", "length", "content_filter"]


@dataclass(frozen=True, slots=True)
class Finish:
    """Why the model stopped."""

    reason: FinishReason


ChatItem = TextDelta | Usage | Finish


class ChatModel(Protocol):
    """`takes_prefill`: a last message of the assistant is gone on with, not answered."""

    takes_prefill: bool

    def reply(self, messages: Sequence[ChatMessage]) -> AbstractAsyncContextManager[AsyncIterator[ChatItem]]: ...


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """What the bytes of an input are: `mime_type`, and the rate of raw PCM (16-bit mono)."""

    mime_type: str
    sample_rate: int


class AudioInput(Protocol):
    """The input of a stream: read from its start by every attempt, then live, until its end."""

    def read(self) -> AsyncGenerator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Transcript:
    """`final` closes the transcription; what came before it is partial and no output."""

    text: str
    final: bool
    seconds: float | None = None


class Recognizer(Protocol):
    def streams(self, audio_format: AudioFormat) -> bool:
        """Whether it listens while the audio arrives."""
        ...

    def transcribe(
        self, audio: AudioInput, audio_format: AudioFormat
    ) -> AbstractAsyncContextManager[AsyncIterator[Transcript]]: ...


@dataclass(frozen=True, slots=True)
class AssessmentRequest:
    """What the speaker was to say, and how to grade it (§4.18)."""

    reference_text: str
    language: str = "en-US"
    grading_system: Literal["FivePoint", "HundredMark"] = "HundredMark"
    granularity: Literal["Phoneme", "Word", "FullText"] = "Phoneme"
    enable_miscue: bool = False
    enable_prosody_assessment: bool = False


@dataclass(frozen=True, slots=True)
class Assessment:
    """Closes the assessment. `raw` is one result in the vendor's form, however many segments the vendor made.

    An empty `text`: nothing was understood.
    """

    text: str
    raw: Mapping[str, Any]


AssessmentItem = Transcript | Assessment


class Assessor(Protocol):
    """Hears PCM, 16-bit mono at 16 kHz. Transcripts, if any, are partial."""

    def assess(
        self, audio: AudioInput, request: AssessmentRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[AssessmentItem]]: ...


@dataclass(frozen=True, slots=True)
class SpeechFormat:
    """First item of every synthesis. With `audio/wav`, `AudioBytes` is raw 16-bit mono PCM."""

    mime_type: Literal["audio/mpeg", "audio/wav"]
    sample_rate: int


@dataclass(frozen=True, slots=True)
class AudioBytes:
    """Audio, in order."""

    audio: bytes


@dataclass(frozen=True, slots=True)
class Viseme:
    """`offset_ms` from the start of this call's audio; `viseme_id` 0 to 21 in the scheme of vendor A."""

    offset_ms: int
    viseme_id: int


@dataclass(frozen=True, slots=True)
class Visemes:
    """Mouth shapes, no later than the audio that they belong to."""

    visemes: Sequence[Viseme]


SpeechItem = SpeechFormat | AudioBytes | Visemes | Usage


class Synthesizer(Protocol):
    def speak(self, text: str) -> AbstractAsyncContextManager[AsyncIterator[SpeechItem]]: ...
