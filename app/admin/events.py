"""Admin API of event sinks and their undelivered events: lists both, and makes events due again."""

from collections import defaultdict
from collections.abc import Mapping

from app.admin.area import FOR_EDITORS, FOR_VIEWERS
from app.admin.reasons import origin_with_reason
from app.http.paging import Page, SortedQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.transactions import Transaction
from storage.configs.kinds.events import EVENTS
from storage.configs.rows import ConfigKey
from storage.events import queue as event_queue
from storage.events.queue import Filter, Sink, SinkCount, Status, StoredEvent
from streams.wire.codec import rfc3339
from streams.wire.errors import ItemNotFound, listed
from streams.wire.model import Model, QueryInt


class EventNotFound(ItemNotFound):
    """The sink has no stored event, or none with this `event_id`."""

    def __init__(self, sink: str) -> None:
        super().__init__(f"there is no such event for sink {listed([sink])}")


class SinkRow(Model):
    app: str
    sink: str
    """Name of a config of kind `events`."""
    fault: str | None = None
    """Why the config cannot be used, so that nothing is delivered; absent if it can."""
    exists: bool
    """Whether the config exists. The events of a deleted one are deleted within an hour."""
    waiting: int
    """Events of which a further attempt follows."""
    dead: int
    """Events whose last attempt failed."""
    oldest_s: float
    """Seconds since the oldest waiting event was due, or 0 if none is due yet."""


class SinkList(Model):
    """The sinks, with what they have not accepted."""

    sinks: list[SinkRow]
    """Those with dead events come first."""


class SinkPath(Model):
    app: str
    """The app of the sink."""
    sink: str
    """Name of a config of kind `events`."""


class EventQuery(SortedQuery[QueryInt]):
    app: str | None = None
    """List only events of this app."""
    sink: str | None = None
    """List only events for this sink."""
    status: Status | None = None
    """List only events with this status."""


class EventRow(Model):
    event_id: str
    """The `id` that the sink gets."""
    app: str
    sink: str
    event: str
    user_id: str
    time: str
    status: Status
    """`waiting`: a further attempt follows at `due_at`. `dead`: the last attempt failed."""
    attempts: int
    """How many attempts have failed."""
    error: str | None = None
    """Why the last attempt failed."""
    due_at: str
    dead_at: str | None = None


class EventList(Page[int]):
    """A page of the events."""

    events: list[EventRow]


class EventRetry(Model):
    event_id: str | None = None
    """Retry only this event. Default: all stored events of the sink."""


class RetriedEvents(Model):
    """How many events are due."""

    retried: int
    """How many events are due now."""


async def list_sinks(call: Call) -> SinkList:
    """List the sinks of all apps, and what they have not accepted."""
    configs = call.services.configs
    found: defaultdict[Sink, dict[Status, SinkCount]] = defaultdict(dict)
    for app_id in configs.apps():
        for name in configs.names(EVENTS, app_id):
            found[Sink(app_id, name)] = {}
    for counted in await call.services.reads.read(event_queue.counts):
        found[Sink(counted.app_id, counted.sink)][counted.status] = counted
    rows = [_sink_row(call, sink, counts) for sink, counts in found.items()]
    return SinkList(sinks=sorted(rows, key=lambda row: (-row.dead, -row.waiting, row.app, row.sink)))


def _sink_row(call: Call, sink: Sink, counts: Mapping[Status, SinkCount]) -> SinkRow:
    configs = call.services.configs
    waiting, dead = counts.get("waiting"), counts.get("dead")
    return SinkRow(
        app=sink.app_id,
        sink=sink.name,
        fault=configs.fault(ConfigKey(sink.app_id, EVENTS.name, sink.name)),
        exists=configs.exists(EVENTS, sink.app_id, sink.name),
        waiting=waiting.count if waiting else 0,
        dead=dead.count if dead else 0,
        oldest_s=round(waiting.oldest_s, 1) if waiting else 0,
    )


async def list_events(call: Call, query: Query[EventQuery]) -> EventList:
    """List the events that sinks have not accepted yet.

    The newest comes first.
    """
    which = Filter(query.app, query.sink, query.status)
    found = await call.services.reads.read(
        lambda conn: event_queue.listed(
            conn, which, oldest_first=query.oldest_first, before=query.before, size=query.size + 1
        )
    )
    page, further = page_of(found, query.size, lambda event: event.position)
    return EventList(next=further, events=[_row(event) for event in page])


async def retry_events(
    call: Call, transaction: Transaction, path: Path[SinkPath], body: Body[EventRetry]
) -> RetriedEvents:
    """Deliver events to a sink again.

    This makes one event due, or all events that the sink has not accepted. Their attempts are counted from zero
    again. The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    async with transaction.begin() as conn:
        sink = Sink(path.app, path.sink)
        count = await event_queue.retry(conn, sink, event_id=body.event_id, origin=origin)
        if not count:
            raise EventNotFound(path.sink)
        return transaction.answer(RetriedEvents(retried=count))


def _row(event: StoredEvent) -> EventRow:
    return EventRow(
        event_id=event.event_id,
        app=event.app_id,
        sink=event.sink,
        event=event.event,
        user_id=event.uid,
        time=rfc3339(event.happened_at),
        status="waiting" if event.dead_at is None else "dead",
        attempts=event.attempts,
        error=event.error,
        due_at=rfc3339(event.due_at),
        dead_at=None if event.dead_at is None else rfc3339(event.dead_at),
    )


ADMIN_EVENT_ROUTES = [
    Endpoint("GET", "/admin/api/events/sinks", list_sinks, FOR_VIEWERS),
    Endpoint("GET", "/admin/api/events", list_events, FOR_VIEWERS),
    Endpoint("POST", "/admin/api/events/{app}/{sink}/retry", retry_events, FOR_EDITORS, errors=(EventNotFound,)),
]
