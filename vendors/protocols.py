"""What the house asks of vendors, one Protocol a capability. Read this page first.

Whatever streams is **an async context manager that gives an async iterator**: entering it sends the
request and holds until the vendor accepted it, leaving it closes the connection, whoever leaves and why.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What the vendor says it used. Tokens for language models; code points, whole seconds elsewhere."""

    input_token: int
    output_token: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Why the model stopped."""

    reason: Literal["stop", "length", "content_filter"]


ChatItem = TextDelta | Usage | Finish


class ChatModel(Protocol):
    def reply(self, messages: Sequence[ChatMessage]) -> AbstractAsyncContextManager[AsyncIterator[ChatItem]]: ...


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """What the bytes of an input are: `mime_type`, and the rate of raw PCM (16-bit mono)."""

    mime_type: str
    sample_rate: int


class AudioInput(Protocol):
    """The input of a stream: read from its start by every attempt, then live, until its end."""

    def read(self) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Transcript:
    """`final` closes the transcription; what came before it is partial and no output."""

    text: str
    final: bool
    seconds: float | None = None


class Recognizer(Protocol):
    def transcribe(
        self, audio: AudioInput, audio_format: AudioFormat
    ) -> AbstractAsyncContextManager[AsyncIterator[Transcript]]: ...


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
