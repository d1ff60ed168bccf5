"""What streams say: one class per event (§6 of the interface), and their one encoding."""

from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from streams.wire.codec import dumps
from streams.wire.errors import ServiceError

FinishReason = Literal["stop", "length", "content_filter", "canceled"]


@dataclass(slots=True)
class Event(ABC):
    """`content` is what stands under `content` in the event's JSON.

    Not frozen, nor is what becomes one: that would cost a delta as much as encoding it. Nothing changes them.
    """

    name: ClassVar[str]
    head: ClassVar[bytes]
    """Of its frames, behind the id."""

    def __init_subclass__(cls) -> None:
        cls.head = b"event: %b\ndata: " % cls.name.encode()

    @abstractmethod
    def content(self) -> Any: ...

    def said(self) -> str | bytes:
        """The answer that this event delivers: what the stream's digest covers."""
        return b""


@dataclass(slots=True)
class Start(Event):
    """First event of every stream."""

    name = "start"

    def content(self) -> str:
        return "start"


@dataclass(slots=True)
class UserInput(Event):
    """What the user said: the text as sent, or what was recognised."""

    name = "user_input"
    text: str

    def content(self) -> str:
        return self.text


@dataclass(slots=True)
class AssistantOutputChunk(Event):
    """A piece of paragraph `index` of the reply."""

    name = "assistant_output_chunk"
    index: int
    text: str

    def content(self) -> dict[str, Any]:
        return {"index": self.index, "text": self.text}

    def said(self) -> str:
        return self.text


@dataclass(slots=True)
class AssistantOutputContentSegment(Event):
    """The whole text of paragraph `index`, after its chunks."""

    name = "assistant_output_content_segment"
    index: int
    text: str

    def content(self) -> dict[str, Any]:
        return {"index": self.index, "text": self.text}


@dataclass(slots=True)
class AssistantOutputRestart(Event):
    """The answer was cut and is written anew: all with an index from `from_index` on is void."""

    name = "assistant_output_restart"
    from_index: int

    def content(self) -> dict[str, Any]:
        return {"from_index": self.from_index}


@dataclass(slots=True)
class FirstSentenceEnabled(Event):
    """Once, directly before the first audio of a conversation."""

    name = "assistant_output_audio_first_sentence_enabled"

    def content(self) -> bool:
        return True


@dataclass(slots=True)
class AssistantOutputAudioChunk(Event):
    """Audio of paragraph `index`, in order. The first of an index tells what it is."""

    name = "assistant_output_audio_chunk"
    index: int
    audio: bytes
    mime_type: str | None = None
    sample_rate: int | None = None

    def content(self) -> dict[str, Any]:
        return {"index": self.index, **_audio(self.audio, self.mime_type, self.sample_rate)}

    def said(self) -> bytes:
        return self.audio


@dataclass(slots=True)
class AssistantOutputAudio(Event):
    """Where the stored audio of paragraph `index` is."""

    name = "assistant_output_audio"
    index: int
    audio_url: str
    mime_type: str
    viseme_url: str | None = None

    def content(self) -> dict[str, Any]:
        return _present(
            index=self.index, audio_url=self.audio_url, mime_type=self.mime_type, viseme_url=self.viseme_url
        )


@dataclass(slots=True)
class AssistantOutputViseme(Event):
    """Mouth shapes of paragraph `index`, no later than their audio; `estimated` ones come once, behind it."""

    name = "assistant_output_viseme"
    index: int
    visemes: Sequence[tuple[int, int]]
    estimated: bool = False

    def content(self) -> dict[str, Any]:
        return {"index": self.index, **_visemes(self.visemes, estimated=self.estimated)}


@dataclass(slots=True)
class AudioChunk(Event):
    """A piece of text-to-speech audio; the pieces joined are one file. The first tells what it is."""

    name = "audio_chunk"
    audio: bytes
    mime_type: str | None = None
    sample_rate: int | None = None

    def content(self) -> dict[str, Any]:
        return _audio(self.audio, self.mime_type, self.sample_rate)

    def said(self) -> bytes:
        return self.audio


@dataclass(slots=True)
class VisemeEvent(Event):
    """Mouth shapes of text-to-speech, no later than their audio; `estimated` ones come once, behind it."""

    name = "viseme"
    visemes: Sequence[tuple[int, int]]
    estimated: bool = False

    def content(self) -> dict[str, Any]:
        return _visemes(self.visemes, estimated=self.estimated)


@dataclass(slots=True)
class Audio(Event):
    """Where the stored audio of a text-to-speech stream is, and what it cost."""

    name = "audio"
    audio_url: str
    mime_type: str
    unit_price: dict[str, Any]
    viseme_url: str | None = None

    def content(self) -> dict[str, Any]:
        return _present(
            audio_url=self.audio_url,
            mime_type=self.mime_type,
            unit_price=self.unit_price,
            viseme_url=self.viseme_url,
        )


@dataclass(slots=True)
class End(Event):
    """Last event of a good stream: what came of it."""

    name = "end"
    receipt: dict[str, Any]

    def content(self) -> dict[str, Any]:
        return self.receipt


@dataclass(slots=True)
class Failed(Event):
    """Last event of a stream that failed. The words of errors stand in their underscore form."""

    name = "error"
    error: dict[str, Any]

    def content(self) -> dict[str, Any]:
        return {"error": self.error}


PING = b"event: ping\ndata: %b\n\n"


def encode(event: Event, event_id: int, timestamp_ms: int) -> bytes:
    """The frame of one event: made once, whoever reads it."""
    told = dumps({"content": event.content(), "timestamp": timestamp_ms})
    return b"id: %d\n%b%b\n\n" % (event_id, event.head, told)


def encode_unnumbered(event: Event, timestamp_ms: int) -> bytes:
    """A frame without an id: what is said in place of a stream that is lost."""
    return encode(event, 0, timestamp_ms).partition(b"\n")[2]


def encode_ping(timestamp_ms: int) -> bytes:
    """A sign of life without an id: no part of the log."""
    return PING % dumps({"content": "ping", "timestamp": timestamp_ms})


def error_content(error: ServiceError) -> dict[str, Any]:
    """An error as events tell it: words in their underscore form, and whether asking again may help."""
    extra = {"retryable": error.retryable, **error.extra}
    if attempts := extra.get("attempts"):
        extra["attempts"] = attempts_content(attempts)
    return {**_underscored(error.error_type, str(error)), "extra": extra}


def attempts_content(attempts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Attempts that failed, as events tell them."""
    return [{**attempt, **_underscored(**attempt)} for attempt in attempts]


def _underscored(error_type: str, message: str, **_: Any) -> dict[str, str]:
    return {
        "error_type": error_type.replace(" ", "_"),
        "message": message.replace("backend unavailable", "backend_unavailable", 1),
    }


def _audio(audio: bytes, mime_type: str | None, sample_rate: int | None) -> dict[str, Any]:
    return _present(audio=b64encode(audio).decode("ascii"), mime_type=mime_type, sample_rate=sample_rate)


def _visemes(visemes: Sequence[tuple[int, int]], *, estimated: bool) -> dict[str, Any]:
    content: dict[str, Any] = {
        "visemes": [{"offset_ms": offset_ms, "viseme_id": viseme_id} for offset_ms, viseme_id in visemes]
    }
    return {**content, "estimated": True} if estimated else content


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
