"""The interfaces of vendor clients, one Protocol for each capability. Start reading here.

Streaming methods return an **async context manager that yields an async iterator**. Entering it sends the
request and waits until the vendor has accepted it. Leaving it closes the connection in any case.
"""

import math
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from streams.audio.codec import PCM_16
from streams.audio.signatures import NAMES, WAV

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
    """Usage as reported by the vendor: tokens for language models, code points or whole seconds elsewhere."""

    input_token: int
    output_token: int


FinishReason = Literal["stop", "length", "content_filter"]


@dataclass(frozen=True, slots=True)
class Finish:
    """The reason why the model stopped."""

    reason: FinishReason


@dataclass(frozen=True, slots=True)
class Thinking:
    """A part of a thought has arrived, which is not shown. It extends the time limits."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """All text so far was a thought. The answer follows."""


THINKING = Thinking()
WITHDRAWAL = Withdrawal()

ChatItem = TextDelta | Usage | Finish | Thinking | Withdrawal


class ChatModel(Protocol):
    """`takes_prefill`: whether the model continues a final assistant message instead of replying to it."""

    takes_prefill: bool

    def reply(self, messages: Sequence[ChatMessage]) -> AbstractAsyncContextManager[AsyncIterator[ChatItem]]: ...


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """The format of input audio: `mime_type`, and the sample rate for raw PCM (16-bit mono).

    `codec` is that of `streams.audio.formats.codec_of`, and empty if it is unknown or makes no difference.
    """

    mime_type: str
    sample_rate: int
    codec: str = ""

    def __str__(self) -> str:
        name = NAMES[self.mime_type]
        return f"{name} ({self.codec})" if self.codec else name


ANY_CODEC: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class AcceptedAudio:
    """The audio that a recognizer accepts: its MIME types, each with the codecs that it accepts.

    Audio whose codec is unknown is accepted. The set of codecs may be empty.
    """

    types: Mapping[str, frozenset[str] | None]
    max_file_s: float = math.inf
    """The maximum length of files whose samples cannot be cut, which are all but 16-bit PCM."""

    def accepts(self, audio_format: AudioFormat, seconds: float | None = 0) -> bool:
        """Return whether the recognizer accepts a file of this length, which is `None` if it is unknown."""
        mime_type, codec = audio_format.mime_type, audio_format.codec
        if mime_type not in self.types:
            return False
        can_be_cut = mime_type == "audio/pcm" or (mime_type == WAV and codec == PCM_16)
        if not can_be_cut and (math.inf if seconds is None else seconds) > self.max_file_s:
            return False
        codecs = self.types[mime_type]
        return not codec or codecs is None or codec in codecs


class AudioInput(Protocol):
    """The audio input of a stream. Each call of `read` starts at the beginning and follows the input to its end."""

    def read(self) -> AsyncGenerator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript. The `final` one is the last item; those before it are partial and do not count as output."""

    text: str
    final: bool
    seconds: float | None = None


class Recognizer(Protocol):
    accepted: AcceptedAudio
    """Other audio is converted before it is passed to `transcribe`, or refused."""

    def streams(self, audio_format: AudioFormat) -> bool:
        """Return whether audio of this format is sent to the vendor while it arrives."""
        ...

    def transcribe(
        self, audio: AudioInput, audio_format: AudioFormat
    ) -> AbstractAsyncContextManager[AsyncIterator[Transcript]]: ...


@dataclass(frozen=True, slots=True)
class AssessmentRequest:
    """The reference text and the grading options (§4.18)."""

    reference_text: str
    language: str = "en-US"
    grading_system: Literal["FivePoint", "HundredMark"] = "HundredMark"
    granularity: Literal["Phoneme", "Word", "FullText"] = "Phoneme"
    enable_miscue: bool = False
    enable_prosody_assessment: bool = False


@dataclass(frozen=True, slots=True)
class Assessment:
    """The last item of an assessment. `raw` is one result in the vendor's form, merged from all its segments.

    `text` is empty if no speech was recognized.
    """

    text: str
    raw: Mapping[str, Any]


AssessmentItem = Transcript | Assessment


class Assessor(Protocol):
    """Assesses PCM audio, 16-bit mono at 16 kHz. All transcripts that it yields are partial."""

    def assess(
        self, audio: AudioInput, request: AssessmentRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[AssessmentItem]]: ...


@dataclass(frozen=True, slots=True)
class SpeechFormat:
    """The first item of every synthesis. With `audio/wav`, `AudioBytes` items hold raw 16-bit mono PCM."""

    mime_type: Literal["audio/mpeg", "audio/wav"]
    sample_rate: int


@dataclass(frozen=True, slots=True)
class AudioBytes:
    """A piece of the audio, in order."""

    audio: bytes


@dataclass(frozen=True, slots=True)
class Viseme:
    """`offset_ms` counts from the start of this call's audio; `viseme_id` is 0 to 21 as defined by vendor A."""

    offset_ms: int
    viseme_id: int


@dataclass(frozen=True, slots=True)
class Visemes:
    """Mouth shapes. They arrive before or together with their audio."""

    visemes: Sequence[Viseme]


SpeechItem = SpeechFormat | AudioBytes | Visemes | Usage


class Synthesizer(Protocol):
    def speak(self, text: str) -> AbstractAsyncContextManager[AsyncIterator[SpeechItem]]: ...
