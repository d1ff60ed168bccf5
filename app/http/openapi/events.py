"""What stands under `content` in the events of streams (§6): shapes that follow from the events' fields."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import Field, create_model

from app.http.docs import Stream
from app.http.openapi.schemas import Schema, Schemas
from streams.events import End, Event, Failed
from streams.wire.model import Model
from vendors import fallback


class VisemeAt(Model):
    """A mouth shape, and when it begins from the start of its audio."""

    offset_ms: int
    viseme_id: int = Field(ge=0, le=21)


class UnitPrice(Model):
    """What was used, and what one of it costs in the app's currency."""

    input_per_price: float
    output_per_price: float
    input_token: int
    """Tokens of a language model; code points of speech; whole seconds of audio that was heard."""
    output_token: int


class Digest(Model):
    """Of all answer text and audio in the order of event ids: it shows whether anything is missing."""

    chars: int
    """Code points of text."""
    sha256: str
    """Hexadecimal, over each `text` in UTF-8 and each decoded `audio`."""


class FailedAttempt(Model):
    strategy: str
    stage: fallback.Stage
    error_type: str
    message: str
    elapsed_ms: int


class StreamErrorExtra(Model):
    retryable: bool
    """Whether asking again may help."""
    record_id: int | None = None
    """The record that holds what was said until then."""
    attempts: list[FailedAttempt] | None = None


class StreamError(Model):
    error_type: str
    """The words of errors have their underscore form here: `backend_unavailable`."""
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
    """The types that the content of `event` may have in a stream."""
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
    kinds = [kind for event in stream.events for kind in content_types(stream, event)]
    return [kind for kind in kinds if issubclass(kind, Model)]


def event_list(stream: Stream, schemas: Schemas) -> list[dict[str, Any]]:
    """Every event of a stream: its name, its meaning, the schema of its data."""
    listed = [(event.name, _meaning(event), content_types(stream, event)) for event in stream.events]
    listed.append(("ping", "A sign of life after a silence. It has no id and is no part of the stream.", [str]))
    return [
        {"event": name, "description": meaning, "data": _data(_any_of([schemas.told(kind) for kind in kinds]))}
        for name, meaning, kinds in listed
    ]


def event_table(events: Sequence[dict[str, Any]], schemas: Schemas) -> str:
    """The same for people, in Markdown."""
    rows = [
        f"| `{event['event']}` | {_short(event['data']['properties']['content'], schemas)} "
        f"| {event['description']} |"
        for event in events
    ]
    return "\n".join(["| event | content | meaning |", "|---|---|---|", *rows])


def _meaning(event: type[Event]) -> str:
    return " ".join((event.__doc__ or "").split())


def _any_of(found: Sequence[Schema]) -> Schema:
    return found[0] if len(found) == 1 else {"anyOf": list(found)}


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
    """An object's field names, `?` after those that may be absent; of anything else its type."""
    if "anyOf" in schema:
        return " or ".join(_short(one, schemas) for one in schema["anyOf"])
    found = schemas.resolved(schema)
    if found["type"] != "object":
        return str(found["type"])
    required = found.get("required", ())
    names = [name if name in required else f"{name}?" for name in found["properties"]]
    return f"`{{{', '.join(names)}}}`"
