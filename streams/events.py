"""The events of streams (§6 of the interface), one class each, and their encoding as Server-Sent Events."""

from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from streams.wire.codec import dumps, dumps_plain
from streams.wire.disclosure import told_attempts, told_message
from streams.wire.errors import ServiceError

FinishReason = Literal["stop", "length", "content_filter", "canceled"]


@dataclass(slots=True)
class Event(ABC):
    """An event. `content()` returns the value of `content` in the event's JSON.

    Events, and the items that become events, are never changed. They are not frozen dataclasses, because creating
    a frozen dataclass takes as long as encoding a delta.
    """

    name: ClassVar[str]
    head: ClassVar[bytes]
    """The part of the frame between the id and the JSON."""

    def __init_subclass__(cls) -> None:
        cls.head = b"event: %b\ndata: " % cls.name.encode()

    @abstractmethod
    def content(self) -> Any: ...

    def output(self) -> str | bytes:
        """Return the part of the answer that this event delivers. The stream's digest covers it."""
        return b""


@dataclass(slots=True)
class Start(Event):
    """The first event of every stream."""

    name = "start"

    def content(self) -> str:
        return "start"


@dataclass(slots=True)
class UserInput(Event):
    """The user's input: the text as sent, or the recognized text."""

    name = "user_input"
    text: str

    def content(self) -> str:
        return self.text


@dataclass(slots=True)
class EndOfSpeech(Event):
    """With `turn_detection`: the user has finished speaking, `at_ms` milliseconds after the beginning of the audio.

    What the client sends after this event is ignored.
    """

    name = "end_of_speech"
    at_ms: int

    def content(self) -> dict[str, Any]:
        return {"at_ms": self.at_ms}


@dataclass(slots=True)
class AssistantOutputChunk(Event):
    """A piece of paragraph `index` of the reply."""

    name = "assistant_output_chunk"
    index: int
    text: str

    def content(self) -> dict[str, Any]:
        return {"index": self.index, "text": self.text}

    def output(self) -> str:
        return self.text


@dataclass(slots=True)
class AssistantOutputContentSegment(Event):
    """The complete text of paragraph `index`, sent after its chunks."""

    name = "assistant_output_content_segment"
    index: int
    text: str

    def content(self) -> dict[str, Any]:
        return {"index": self.index, "text": self.text}


@dataclass(slots=True)
class AssistantOutputRestart(Event):
    """The answer starts again: all events with an index of `from_index` or higher are void."""

    name = "assistant_output_restart"
    from_index: int

    def content(self) -> dict[str, Any]:
        return {"from_index": self.from_index}


@dataclass(slots=True)
class FirstSentenceEnabled(Event):
    """Sent once per conversation stream, directly before the first audio."""

    name = "assistant_output_audio_first_sentence_enabled"

    def content(self) -> bool:
        return True


@dataclass(slots=True)
class AssistantOutputAudioChunk(Event):
    """A piece of the audio of paragraph `index`, in order. The first piece of a paragraph states the format."""

    name = "assistant_output_audio_chunk"
    index: int
    audio: bytes
    mime_type: str | None = None
    sample_rate: int | None = None

    def content(self) -> dict[str, Any]:
        return {"index": self.index, **_audio(self.audio, self.mime_type, self.sample_rate)}

    def output(self) -> bytes:
        return self.audio


@dataclass(slots=True)
class AssistantOutputAudio(Event):
    """Links to the stored audio of paragraph `index`."""

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
    """Mouth shapes of paragraph `index`, sent before or with their audio.

    `estimated` mouth shapes are sent once, after the audio of the paragraph.
    """

    name = "assistant_output_viseme"
    index: int
    visemes: Sequence[tuple[int, int]]
    estimated: bool = False

    def content(self) -> dict[str, Any]:
        return {"index": self.index, **_visemes(self.visemes, estimated=self.estimated)}


@dataclass(slots=True)
class AudioChunk(Event):
    """A piece of text-to-speech audio. All pieces joined are one file. The first piece states the format."""

    name = "audio_chunk"
    audio: bytes
    mime_type: str | None = None
    sample_rate: int | None = None

    def content(self) -> dict[str, Any]:
        return _audio(self.audio, self.mime_type, self.sample_rate)

    def output(self) -> bytes:
        return self.audio


@dataclass(slots=True)
class VisemeEvent(Event):
    """Mouth shapes of a text-to-speech stream, sent before or with their audio.

    `estimated` mouth shapes are sent once, after all audio.
    """

    name = "viseme"
    visemes: Sequence[tuple[int, int]]
    estimated: bool = False

    def content(self) -> dict[str, Any]:
        return _visemes(self.visemes, estimated=self.estimated)


@dataclass(slots=True)
class Audio(Event):
    """Links to the stored audio of a text-to-speech stream, and its price."""

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
    """The last event of a stream that succeeded, with a summary of the stream."""

    name = "end"
    receipt: dict[str, Any]

    def content(self) -> dict[str, Any]:
        return self.receipt


@dataclass(slots=True)
class Failed(Event):
    """The last event of a stream that failed. Its error types are written with underscores."""

    name = "error"
    error: dict[str, Any]

    def content(self) -> dict[str, Any]:
        return {"error": self.error}


PING = b"event: ping\ndata: %b\n\n"


def encode(event: Event, event_id: int, timestamp_ms: int) -> bytes:
    """Return the frame of an event. All readers share the same bytes."""
    body = dumps_plain({"content": event.content(), "timestamp": timestamp_ms})
    return b"id: %d\n%b%b\n\n" % (event_id, event.head, body)


def encode_unnumbered(event: Event, timestamp_ms: int) -> bytes:
    """Return a frame without an id. It reports the loss of a stream to the reader."""
    return encode(event, 0, timestamp_ms).partition(b"\n")[2]


def encode_ping(timestamp_ms: int) -> bytes:
    """Return a keep-alive frame. It has no id, because it is not part of the log."""
    return PING % dumps({"content": "ping", "timestamp": timestamp_ms})


def error_content(error: ServiceError, *, in_full: bool) -> dict[str, Any]:
    """Return an error as events present it: error types with underscores, and `retryable` in `extra`.

    `in_full`: with the details of faults of configs.
    """
    extra = {"retryable": error.retryable, **error.extra}
    if attempts := extra.get("attempts"):
        extra["attempts"] = attempts_content(attempts, in_full=in_full)
    return {**_underscored(error.error_type, told_message(error, in_full=in_full)), "extra": extra}


def attempts_content(attempts: Sequence[dict[str, Any]], *, in_full: bool) -> list[dict[str, Any]]:
    """Return failed attempts as events present them."""
    return [{**attempt, **_underscored(**attempt)} for attempt in told_attempts(attempts, in_full=in_full)]


def error_type_in_events(error_type: str) -> str:
    return error_type.replace(" ", "_")


def _underscored(error_type: str, message: str, **_: Any) -> dict[str, str]:
    return {
        "error_type": error_type_in_events(error_type),
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
