"""Admin API of undelivered events: lists them, and makes them due again."""

from app.admin.area import FOR_EDITORS, FOR_VIEWERS
from app.http.paging import Page, PageQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.transactions import Transaction
from storage.events import queue as event_queue
from storage.events.queue import Filter, Sink, Status, StoredEvent
from streams.wire.codec import rfc3339
from streams.wire.errors import ItemNotFound, listed
from streams.wire.model import Model, QueryInt


class EventNotFound(ItemNotFound):
    """The sink has no stored event, or none with this `event_id`."""

    def __init__(self, sink: str) -> None:
        super().__init__(f"there is no such event for sink {listed([sink])}")


class SinkPath(Model):
    app: str
    """The app of the sink."""
    sink: str
    """Name of a config of kind `events`."""


class EventQuery(PageQuery[QueryInt]):
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
    events: list[EventRow]


class EventRetry(Model):
    event_id: str | None = None
    """Retry only this event. Default: all stored events of the sink."""


class RetriedEvents(Model):
    retried: int
    """How many events are due now."""


async def list_events(call: Call, query: Query[EventQuery]) -> EventList:
    """List the events that sinks have not accepted yet.

    The newest comes first.
    """
    which = Filter(query.app, query.sink, query.status)
    found = await call.services.reads.read(
        lambda conn: event_queue.listed(conn, which, before=query.before, size=query.size + 1)
    )
    page, further = page_of(found, query.size, lambda event: event.position)
    return EventList(next=further, events=[_row(event) for event in page])


async def retry_events(
    call: Call, transaction: Transaction, path: Path[SinkPath], body: Body[EventRetry]
) -> RetriedEvents:
    """Deliver events to a sink again.

    This makes one event due, or all events that the sink has not accepted. Their attempts are counted from zero
    again.
    """
    async with transaction.begin() as conn:
        sink = Sink(path.app, path.sink)
        count = await event_queue.retry(conn, sink, event_id=body.event_id, origin=call.origin)
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
    Endpoint("GET", "/admin/api/events", list_events, FOR_VIEWERS),
    Endpoint("POST", "/admin/api/events/{app}/{sink}/retry", retry_events, FOR_EDITORS, errors=(EventNotFound,)),
]
