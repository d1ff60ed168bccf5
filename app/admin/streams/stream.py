"""Admin API: one stream that runs or can still be read, in any process, and its events while they occur."""

import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, NamedTuple

from aiohttp import web
from pydantic import AfterValidator, Field

from actors.runtime.context import Owner
from actors.runtime.inspection import details
from app.admin.apps import require_app
from app.admin.area import FOR_VIEWERS
from app.admin.streams.live import StreamRow, row_of
from app.admin.streams.processes import ask_others
from app.admin.streams.shown_events import ShownEvents
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path, Query
from storage.conversations.admission import StreamLocation
from storage.errors import UnknownApp
from storage.operators.operators import Role
from streams.log import Following
from streams.wire.codec import rfc3339
from streams.wire.errors import ItemNotFound, ServiceError, Unavailable, listed
from streams.wire.model import Model, QueryInt
from streams.wire.owned import Owned

WATCHED_S = 60.0
"""How long one response lasts. Then the console makes a new request, which checks the session again."""
_IDLE_S = 5.0
_KEEP_ALIVE = b": \n\n"
_Follow = Callable[[int], Following]


class StreamNotReadable(ItemNotFound):
    """No stream of the app with this id runs, or ended so recently that it can still be read."""

    def __init__(self, stream_id: str) -> None:
        super().__init__(f"stream {listed([stream_id])} does not run, and can no longer be read")


class EventsStayInProcess(ItemNotFound):
    """The events of this stream cannot be read through another process than its own."""

    def __init__(self, stream_id: str) -> None:
        super().__init__(f"events of stream {listed([stream_id])} can be read in its own process only")


_STREAM = Owned(StreamNotReadable)


class StreamPath(Model):
    app: str
    """An app of this server."""
    stream_id: Annotated[str, AfterValidator(_STREAM.validate)]
    """A stream of any user of the app."""


class RunningAttempt(Model):
    number: int
    stage: str
    """`stt`, `llm`, `tts` or `assess`."""
    strategy: str
    vendor: str
    model: str | None = None
    outcome: str
    """`running`, `won`, `failed`, `hedged` or `canceled`."""
    message: str
    """Why it has failed."""
    started_ms: int | None = None
    """When it began, in milliseconds after the request arrived."""
    first_output_ms: int | None = None
    """Milliseconds from its beginning to its first output."""
    elapsed_ms: int
    input_unit: int
    output_unit: int
    price: str
    """In the app's currency."""
    usage_source: str


class StreamDetails(Model):
    """The stream with its attempts at vendors."""

    stream: StreamRow
    conversation_id: str | None = None
    began_at: str
    ended: bool
    latency_ms: dict[str, int]
    """The stages that it has reached, in milliseconds after the request arrived, as in the `end` event."""
    characters: int
    """How much text it has sent."""
    attempts: list[RunningAttempt]
    """The calls to vendors so far. Those of a stream that has ended are stored:
    `GET /admin/api/streams/{app}/{stream_id}/attempts`."""


class EventsQuery(Model):
    after: QueryInt = Field(default=0, ge=0)
    """The id of the last event that the caller has."""


class _Found(NamedTuple):
    process: str
    details: dict[str, Any]


async def read_stream(call: Call, path: Path[StreamPath]) -> StreamDetails:
    """Read a stream that runs, or has just ended, in any process."""
    process, found = await _find(call, path)
    return StreamDetails(
        stream=row_of(process, found),
        conversation_id=found["conversation_id"],
        began_at=rfc3339(datetime.fromtimestamp(found["began_ms"] / 1000, UTC)),
        ended=found["ended"],
        latency_ms=found["latency_ms"],
        characters=found["characters"],
        attempts=[RunningAttempt.model_validate(attempt) for attempt in found["attempts"]],
    )


async def watch_events(
    call: Call, path: Path[StreamPath], query: Query[EventsQuery]
) -> Coroutine[Any, Any, web.StreamResponse]:
    """Watch the events of a stream in any process.

    It runs, or has ended within the last minutes.

    The data of each event are `id`, `name`, `at_ms` (the time in milliseconds) and `bytes`. Callers with the role
    `admin` also get its `content`, with the size of audio in place of the audio; for others the texts of users are
    private. Events that are no longer kept are skipped. The response ends after the last event, and after a minute;
    request it again then, with `after`.
    """
    found = await _find(call, path)
    if found.process != call.services.heartbeat.process and not found.details["readable_elsewhere"]:
        raise EventsStayInProcess(path.stream_id)
    operator = call.caller.operator
    may_read = operator is None or operator.role is Role.ADMIN
    return _watched(call, path, found, ShownEvents(with_content=may_read), after=query.after)


async def _find(call: Call, path: StreamPath) -> _Found:
    """Return the process of a stream and what it knows of it. Raises `StreamNotReadable`."""
    require_app(call, path.app)
    services = call.services
    if (actor := services.supervisor.find_in_app(path.stream_id, path.app)) is not None:
        return _Found(services.heartbeat.process, details(actor))
    wanted = {"app_id": path.app, "stream_id": path.stream_id}
    answers = await ask_others(services, {"op": "inspect", "wanted": wanted})
    for process, found in answers.found.items():
        if found is not None:
            return _Found(process, found)
    if not answers.complete:
        raise Unavailable("a process that may have the stream did not answer")
    raise StreamNotReadable(path.stream_id)


@asynccontextmanager
async def _opened(call: Call, path: StreamPath, found: _Found) -> AsyncIterator[tuple[_Follow, int]]:
    """Open the events of a stream. Yield what follows them, and the id of the newest one that is no longer kept."""
    services = call.services
    if (actor := services.supervisor.find_in_app(path.stream_id, path.app)) is not None:
        yield partial(actor.log.follow, idle_s=_IDLE_S, may_lag=True), actor.log.dropped
        return
    owner = Owner(path.app, found.details["user_id"])
    location = StreamLocation(path.stream_id, found.process, None)
    async with services.relay.attached(owner, location, watches=True) as remote:
        yield partial(remote.follow, idle_s=_IDLE_S), max(0, remote.span.first - 1)


async def _watched(
    call: Call, path: StreamPath, found: _Found, shown: ShownEvents, *, after: int
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(call.request)
    with suppress(ConnectionError, ServiceError):  # The page is closed, or events were dropped: it asks again.
        async with _opened(call, path, found) as (follow, dropped), aclosing(follow(max(after, dropped))) as events:
            await _send(call, response, events, shown)
        await response.write_eof()
    return response


async def _send(call: Call, response: web.StreamResponse, events: Following, shown: ShownEvents) -> None:
    ends_at = time.monotonic() + WATCHED_S
    async for ready in events:
        await response.write(shown.feed(ready.frames) or _KEEP_ALIVE)
        if ready.final or time.monotonic() >= ends_at or call.services.supervisor.draining:
            return


_EVENTS = Docs(
    answers={200: OtherResponse("Events whose data describe the events of the stream.", "text/event-stream")}
)
_PATH = "/admin/api/streams/{app}/{stream_id}"

STREAM_ROUTES = [
    Endpoint("GET", _PATH, read_stream, FOR_VIEWERS, errors=(UnknownApp, StreamNotReadable, Unavailable)),
    Endpoint(
        "GET",
        f"{_PATH}/events",
        watch_events,
        FOR_VIEWERS,
        docs=_EVENTS,
        errors=(UnknownApp, StreamNotReadable, EventsStayInProcess, Unavailable),
    ),
]
