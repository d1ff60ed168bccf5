"""Schemas of the `content` of stream events (§6), derived from the fields of the event classes."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import Field, create_model

from app.http.openapi.errors import described, narrowed
from app.http.openapi.schemas import Schema, Schemas
from app.http.rows.docs import Stream
from streams.events import End, Event, Failed, error_type_in_events
from streams.wire.model import Model
from vendors.calls import attempts


class VisemeAt(Model):
    """A mouth shape and its offset from the start of its audio."""

    offset_ms: int
    viseme_id: int = Field(ge=0, le=21)


class UnitPrice(Model):
    """The units used and the price of one unit in the app's currency."""

    input_per_price: float
    output_per_price: float
    input_token: int
    """Tokens of a language model, code points of synthesized text, or whole seconds of recognized audio."""
    output_token: int


class Digest(Model):
    """A checksum of all answer text and audio in the order of event ids. It shows whether anything is missing."""

    chars: int
    """Number of code points of text."""
    sha256: str
    """SHA-256 of each `text` in UTF-8 and each decoded `audio`, in hexadecimal."""


class FailedAttempt(Model):
    strategy: str
    stage: attempts.Stage
    error_type: str
    message: str
    elapsed_ms: int


class StreamErrorExtra(Model):
    retryable: bool
    """Whether a retry may succeed."""
    record_id: int | None = None
    """The record that holds the answer up to the error."""
    attempts: list[FailedAttempt] | None = None


class StreamError(Model):
    error_type: str
    """Error types have underscores here, never spaces: `backend_unavailable`."""
    message: str
    extra: StreamErrorExtra


class FailedContent(Model):
    error: StreamError


_ON_WIRE: Mapping[Any, Any] = {
    bytes: Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})],
    Sequence[tuple[int, int]]: list[VisemeAt],
}
_ON_WIRE_NAMED: Mapping[str, Any] = {"unit_price": UnitPrice}


def content_types(stream: Stream, event: type[Event]) -> Sequence[Any]:
    """Return the types that the content of `event` may have in `stream`."""
    if event is End:
        return stream.ends
    if event is Failed:
        return [FailedContent]
    return [_content_type(event)]


@cache
def _content_type(event: type[Event]) -> Any:
    returned = get_type_hints(event.content)["return"]
    if returned in {str, bool}:
        return returned
    hints = get_type_hints(event)
    shape: dict[str, Any] = {
        field.name: (
            _ON_WIRE_NAMED.get(field.name) or _ON_WIRE.get(hints[field.name], hints[field.name]),
            ... if field.default is MISSING else field.default,
        )
        for field in fields(event)
    }
    return create_model(f"{event.__name__}Content", __base__=Model, **shape)


def models_of(stream: Stream) -> list[type[Model]]:
    types = [content for event in stream.events for content in content_types(stream, event)]
    return [content for content in types if issubclass(content, Model)]


def event_list(stream: Stream, schemas: Schemas) -> list[dict[str, Any]]:
    """Return the name, the meaning and the schema of the data of every event of a stream."""
    listed = [(event.name, _meaning(event), _content_schema(stream, event, schemas)) for event in stream.events]
    listed.append(
        (
            "ping",
            "Sent when the stream was silent for a while. It has no id and is not part of the stream.",
            schemas.response(str),
        )
    )
    return [{"event": name, "description": meaning, "data": _data(content)} for name, meaning, content in listed]


def event_errors(stream: Stream) -> str:
    """Return the errors that the `error` event of a stream may report, as Markdown."""
    return f"The errors of `error`:\n\n{described(stream.errors, written=error_type_in_events)}"


def _content_schema(stream: Stream, event: type[Event], schemas: Schemas) -> Schema:
    if event is Failed:
        types = (error_type_in_events(error.error_type) for error in stream.errors)
        return narrowed(schemas.response(FailedContent), types)
    return _any_of([schemas.response(content) for content in content_types(stream, event)])


def events_described(events: Sequence[dict[str, Any]], schemas: Schemas) -> str:
    """Return the events of `event_list` as a Markdown list, which fits beside the examples and on a phone."""
    lines = (
        f"- `{event['event']}`: {event['description']} "
        f"Its content: {_short(event['data']['properties']['content'], schemas)}."
        for event in events
    )
    return "\n".join(["#### Events\n", *lines])


def _meaning(event: type[Event]) -> str:
    return " ".join((event.__doc__ or "").split())


def _any_of(schemas: Sequence[Schema]) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


def _data(content: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {
            "content": content,
            "timestamp": {"type": "integer", "description": "Unix milliseconds."},
        },
        "required": ["content", "timestamp"],
    }


def _short(schema: Schema, schemas: Schemas) -> str:
    """Return the field names of an object, with `?` after optional ones, or the type of anything else.

    Each name is a code of its own, so that a line can break between names and never within one.
    """
    if "anyOf" in schema:
        return ", or ".join(_short(option, schemas) for option in schema["anyOf"])
    resolved = schemas.resolved(schema)
    if resolved["type"] != "object":
        return f"a {resolved['type']}"
    required = resolved.get("required", ())
    names = [name if name in required else f"{name}?" for name in resolved["properties"]]
    return ", ".join(f"`{name}`" for name in names)
