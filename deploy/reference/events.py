"""The page of events: events of streams, and events that are reported to the sinks of an app."""

from collections.abc import Iterator
from typing import Any

from app.ai.reference import CONVERSE, SPEAK
from app.http.openapi.events import content_types, event_errors, models_of
from app.http.openapi.schemas import Schemas
from app.http.rows.docs import Stream
from deploy.reference.markdown import one_line, output_table, page_of, table, type_of
from storage.events.outbox import ReportedEvent
from streams.events import Event

_ABOUT = """
Parley sends two kinds of events: those of a [stream](#events-of-streams), which answer one request, and those that
are [reported to sinks](#events-for-sinks), your own systems.
"""
_STREAMS = """
The response of a stream is Server-Sent Events. The data of an event is `{"content": …, "timestamp": …}`, with the
time in Unix milliseconds. Its ids count 1, 2, 3… A stream begins with `start` and ends with exactly one `end` or
`error`. While a stream is silent, `ping` is sent, which has no id and is not part of the stream.
[Streams](../guides/streams.md) explains how to resume, cancel and repeat one.
"""
_SINKS = """
An event is the JSON object `{event, id, app_id, time, data}`. These are the fields of `data`.
[Events](../guides/events.md) explains sinks, delivery and signatures.
"""
_KINDS = {"conversations": CONVERSE.stream, "text to speech": SPEAK.stream}


def events_page() -> str:
    streams = {kind: stream for kind, stream in _KINDS.items() if stream is not None}
    schemas = Schemas(requests=[], responses=[model for stream in streams.values() for model in models_of(stream)])
    events = dict.fromkeys(event for stream in streams.values() for event in stream.events)
    contents = {content.__name__ for event in events for content in _contents(event, streams)}
    return page_of(
        "Events",
        _ABOUT,
        "## Events of streams",
        _STREAMS,
        table(("event", "in", "meaning"), (_row(event, streams) for event in events)),
        *(part for event in events for part in _section(event, streams, schemas)),
        "## Parts of contents",
        *(part for name in schemas.components if name not in contents for part in _part(name, schemas)),
        "## Errors of streams",
        *(part for kind, stream in streams.items() for part in (f"### Of {kind}", event_errors(stream))),
        "## Events for sinks",
        _SINKS,
        *(part for event in ReportedEvent.__subclasses__() for part in _reported(event)),
    )


def _row(event: type[Event], streams: dict[str, Stream]) -> tuple[str, str, str]:
    kinds = [kind for kind, stream in streams.items() if event in stream.events]
    where = "all streams" if len(kinds) == len(streams) else ", ".join(kinds)
    return (f"[`{event.name}`](#{event.name})", where, one_line(event.__doc__))


def _contents(event: type[Event], streams: dict[str, Stream]) -> list[Any]:
    """Return the types of the content of an event in all streams."""
    found = [
        content for stream in streams.values() if event in stream.events for content in content_types(stream, event)
    ]
    return list(dict.fromkeys(found))


def _section(event: type[Event], streams: dict[str, Stream], schemas: Schemas) -> Iterator[str]:
    yield f"### {event.name}"
    contents = _contents(event, streams)
    for content in contents:
        schema = schemas.resolved(schemas.response(content))
        if "properties" not in schema:
            yield f"The content is a {type_of(schema)}."
            continue
        if len(contents) > 1:
            kinds = [kind for kind, stream in streams.items() if content in content_types(stream, event)]
            yield f"In {' and '.join(kinds)}:"
        yield output_table(schema, schemas.components)


def _part(name: str, schemas: Schemas) -> Iterator[str]:
    schema = schemas.components[name]
    yield f"### {name}"
    yield one_line(schema.get("description"))
    yield output_table(schema, schemas.components)


def _reported(event: type[ReportedEvent]) -> Iterator[str]:
    yield f"### {event.event}"
    yield one_line(event.__doc__)
    yield output_table(event.model_json_schema(mode="serialization"))
