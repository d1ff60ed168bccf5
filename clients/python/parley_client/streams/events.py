"""The events of streams. `name` is the name on the wire."""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from parley_client.errors import NotUnderstood, ParleyError
from parley_client.streams.sse import SseEvent


@dataclass(frozen=True, slots=True)
class Event:
    id: int | None
    """1, 2, 3… in each stream. None: the event is not part of the stream, and is not sent again after a cut."""
    timestamp: int
    """Unix milliseconds of the server."""
    name: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Start(Event):
    """The first event of every stream."""

    name = "start"


@dataclass(frozen=True, slots=True)
class EndOfSpeech(Event):
    """With turn detection: the user has finished speaking, and the client sends no more audio."""

    name = "end_of_speech"
    at_ms: int
    """Where the speech has ended, from the beginning of the audio; `max_s` if that was reached."""


@dataclass(frozen=True, slots=True)
class UserInput(Event):
    """The user's input: the text as sent, or the recognized text."""

    name = "user_input"
    text: str


@dataclass(frozen=True, slots=True)
class TextChunk(Event):
    """A piece of paragraph `index` of the answer."""

    name = "assistant_output_chunk"
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph(Event):
    """The complete text of paragraph `index`, sent after its chunks."""

    name = "assistant_output_content_segment"
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Restart(Event):
    """The answer starts again: all events with an index of `from_index` or higher are void."""

    name = "assistant_output_restart"
    from_index: int


@dataclass(frozen=True, slots=True)
class AudioBegins(Event):
    """Sent once per conversation stream, directly before the first audio."""

    name = "assistant_output_audio_first_sentence_enabled"


@dataclass(frozen=True, slots=True)
class AudioChunk(Event):
    """A piece of audio. The pieces of one paragraph, joined, are one file; the first states the format.

    Text to speech has no paragraphs: `index` is 0.
    """

    name = "assistant_output_audio_chunk"
    index: int
    audio: bytes
    mime_type: str | None
    sample_rate: int | None


@dataclass(frozen=True, slots=True)
class AudioFile(Event):
    """A link to the stored audio of a paragraph, or of a text-to-speech stream, which also has its price."""

    name = "assistant_output_audio"
    index: int
    audio_url: str
    mime_type: str | None
    viseme_url: str | None
    unit_price: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Viseme:
    offset_ms: int
    """From the beginning of the audio."""
    viseme_id: int


@dataclass(frozen=True, slots=True)
class Visemes(Event):
    """Mouth shapes, sent before or with their audio; if they are estimated, once after it."""

    name = "assistant_output_viseme"
    index: int
    visemes: tuple[Viseme, ...]
    estimated: bool


@dataclass(frozen=True, slots=True)
class StreamDigest:
    chars: int
    """Code points of the text."""
    sha256: str
    """Of all text and audio, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class End(Event):
    """The last event of a stream that succeeded."""

    name = "end"
    finish_reason: str
    """`stop`, `length`, `content_filter` or `canceled`."""
    strategy: str | None
    conversation_id: str | None
    record_id: int | None
    """The record of the history. None: nothing was stored."""
    digest: StreamDigest
    content: Mapping[str, Any]
    """All fields, such as `latency_ms`, `unit_price` and, if the voice has failed, `speech`."""


@dataclass(frozen=True, slots=True)
class OtherEvent(Event):
    """An event that this version of the package does not know. `kind` is its name on the wire."""

    name = ""
    kind: str
    content: Any


def read_event(raw: SseEvent) -> Event | ParleyError:
    """Return the event, or the error of an `error` event. Raises `NotUnderstood`."""
    try:
        event_id = None if raw.id is None else int(raw.id)
        body = json.loads(raw.data)
        return _typed(raw.name, event_id, int(body["timestamp"]), body["content"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotUnderstood(f"an event {raw.name!r} of the stream is malformed") from error


def _typed(name: str, event_id: int | None, timestamp: int, content: Any) -> Event | ParleyError:
    if name == "error":
        return _error(**content["error"])
    make = _KINDS.get(name)
    return OtherEvent(event_id, timestamp, name, content) if make is None else make(event_id, timestamp, content)


def _error(error_type: str, message: str, extra: Mapping[str, Any] | None = None, **_: Any) -> ParleyError:
    return ParleyError(error_type, message, extra=extra)


def _audio_chunk(event_id: int | None, timestamp: int, content: dict[str, Any]) -> AudioChunk:
    return AudioChunk(
        event_id,
        timestamp,
        content.get("index", 0),
        b64decode(content["audio"], validate=True),
        content.get("mime_type"),
        content.get("sample_rate"),
    )


def _audio_file(event_id: int | None, timestamp: int, content: dict[str, Any]) -> AudioFile:
    return AudioFile(
        event_id,
        timestamp,
        content.get("index", 0),
        content["audio_url"],
        content.get("mime_type"),
        content.get("viseme_url"),
        content.get("unit_price"),
    )


def _visemes(event_id: int | None, timestamp: int, content: dict[str, Any]) -> Visemes:
    visemes = tuple(Viseme(shape["offset_ms"], shape["viseme_id"]) for shape in content["visemes"])
    return Visemes(event_id, timestamp, content.get("index", 0), visemes, content.get("estimated", False))


def _end(event_id: int | None, timestamp: int, content: dict[str, Any]) -> End:
    return End(
        event_id,
        timestamp,
        content["finish_reason"],
        content.get("strategy"),
        content.get("conversation_id"),
        content.get("record_id"),
        StreamDigest(content["digest"]["chars"], content["digest"]["sha256"]),
        content,
    )


_KINDS: dict[str, Callable[[int | None, int, Any], Event]] = {
    Start.name: lambda event_id, timestamp, _: Start(event_id, timestamp),
    EndOfSpeech.name: lambda event_id, timestamp, content: EndOfSpeech(event_id, timestamp, content["at_ms"]),
    UserInput.name: UserInput,
    TextChunk.name: lambda event_id, timestamp, content: TextChunk(
        event_id, timestamp, content["index"], content["text"]
    ),
    Paragraph.name: lambda event_id, timestamp, content: Paragraph(
        event_id, timestamp, content["index"], content["text"]
    ),
    Restart.name: lambda event_id, timestamp, content: Restart(event_id, timestamp, content["from_index"]),
    AudioBegins.name: lambda event_id, timestamp, _: AudioBegins(event_id, timestamp),
    AudioChunk.name: _audio_chunk,
    AudioFile.name: _audio_file,
    Visemes.name: _visemes,
    End.name: _end,
    "audio_chunk": _audio_chunk,
    "audio": _audio_file,
    "viseme": _visemes,
}
"""The events of conversations, then those of text to speech."""
