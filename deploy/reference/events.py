"""The page of events: events of streams, and events that are reported to the sinks of an app."""

from collections.abc import Iterator
from typing import Any

from orjson import OPT_INDENT_2

from app.ai.reference import CONVERSE, SPEAK
from app.http.openapi.events import content_types, event_errors, models_of
from app.http.openapi.schemas import Schemas
from app.http.rows.docs import Stream
from deploy.reference.markdown import one_line, output_table, page_of, table, type_of
from storage.events.outbox import ReportedEvent
from streams.events import Event, encode_ping
from streams.wire.codec import dumps, loads

_ABOUT = """
Parley sends two kinds of events: those of a [stream](#events-of-streams), which answer one request, and those that
are [reported to sinks](#events-for-sinks), your own systems.
"""
_STREAMS = """
The response of a stream is Server-Sent Events. The data of an event is `{"content": …, "timestamp": …}`, with the
time in Unix milliseconds. Its ids count 1, 2, 3… A stream begins with `start` and ends with exactly one `end` or
`error`. While a stream is silent, `ping` is sent, which has no id and is not part of the stream. Ignore events
whose names you do not know: new versions add some. [Streams](../guides/streams.md) explains how to resume, cancel
and repeat one. A resumed stream has the events of the first response. Pronunciation assessment responds with JSON.
"""
_ORDERS = {
    "conversations": """
`start`, then `end_of_speech` if the server hears the end, then `user_input`. The text of the answer follows,
paragraph by paragraph: the chunks of a paragraph, then its segment. Its audio follows as soon as a sentence is
complete, and also paragraph by paragraph: mouth shapes and chunks, then the link. So the audio of a paragraph may
arrive between text of later ones, and text never waits for audio. A restart takes back what has an index of
`from_index` or higher, text and audio.
""",
    "text to speech": """
`start`, then mouth shapes and chunks of audio, then the link.
""",
}
_PING = """
Sent after 15 s without another event, so that proxies keep the connection and clients notice a lost one. It has no
id.
"""
_AT_MS = 1_790_000_015_000
_LINE = 100
"""Longer examples are shown with a field in each line."""
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
        *(part for kind, stream in streams.items() for part in _order(kind, stream)),
        *(part for event in events for part in _section(event, streams, schemas)),
        "### ping",
        _PING,
        _json(encode_ping(_AT_MS)),
        "## Parts of contents",
        *(part for name in schemas.components if name not in contents for part in _part(name, schemas)),
        "## Whole streams",
        *(part for stream in streams.values() for part in _transcripts(stream)),
        "## Errors of streams",
        *(part for kind, stream in streams.items() for part in (f"### Of {kind}", event_errors(stream))),
        "## Events for sinks",
        _SINKS,
        *(part for event in ReportedEvent.__subclasses__() for part in _reported(event)),
    )


def _order(kind: str, stream: Stream) -> Iterator[str]:
    """Yield the events of a kind of streams, in their order."""
    yield f"### Of {kind}: the order"
    yield _ORDERS[kind]
    yield table(
        ("event", "meaning"),
        ((f"[`{event.name}`](#{event.name})", one_line(event.__doc__)) for event in stream.events),
    )


def _transcripts(stream: Stream) -> Iterator[str]:
    for title, frames in stream.transcripts.items():
        yield f"**{title}**"
        yield f"```\n{frames.decode().strip()}\n```"


def _examples(event: type[Event], streams: dict[str, Stream]) -> Iterator[str]:
    """Yield the first example of an event in each kind of streams, if they differ."""
    found = {}
    for stream in streams.values():
        frames = [frame for frames in stream.transcripts.values() for frame in frames.split(b"\n\n")]
        examples = [frame for frame in frames if b"\nevent: %b\n" % event.name.encode() in frame]
        if event in stream.events:
            found[_shape(examples[0])] = examples[0]
    yield from map(_json, found.values())


def _shape(frame: bytes) -> tuple[str, ...]:
    content = loads(frame.partition(b"data: ")[2])["content"]
    return tuple(content) if isinstance(content, dict) else ()


def _json(frame: bytes) -> str:
    """Return the data of a frame as a block."""
    data = frame.partition(b"data: ")[2].strip()
    text = data if len(data) <= _LINE else dumps(loads(data), option=OPT_INDENT_2)
    return f"```json\n{text.decode()}\n```"


def _contents(event: type[Event], streams: dict[str, Stream]) -> list[Any]:
    """Return the types of the content of an event in all streams."""
    found = [
        content for stream in streams.values() if event in stream.events for content in content_types(stream, event)
    ]
    return list(dict.fromkeys(found))


def _section(event: type[Event], streams: dict[str, Stream], schemas: Schemas) -> Iterator[str]:
    yield f"### {event.name}"
    kinds = [kind for kind, stream in streams.items() if event in stream.events]
    yield f"In {'all streams' if len(kinds) == len(streams) else ' and '.join(kinds)}. {one_line(event.__doc__)}"
    yield from _examples(event, streams)
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
