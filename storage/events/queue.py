"""The queue of events for sinks: due events, their claims, and the outcomes of attempts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from storage.operators.audit import Origin, Subject, record_change
from storage.postgres.database import Connection
from storage.postgres.directions import directed

Status = Literal["waiting", "dead"]


class Sink(NamedTuple):
    """A config of kind `events`."""

    app_id: str
    name: str


@dataclass(frozen=True, slots=True)
class DueEvent:
    """An event that one worker delivers now."""

    position: int
    event_id: str
    app_id: str
    event: str
    uid: str
    happened_at: datetime
    data: dict[str, Any]
    attempts: int
    """How many attempts have failed."""


_DUE = """
select app_id, name from unnest($1::text[], $2::text[]) as sinks (app_id, name)
where exists (
    select from reported_events event
    where event.app_id = sinks.app_id and event.sink = name and dead_at is null and due_at <= now())
"""


async def due_sinks(conn: Connection, sinks: Sequence[Sink]) -> list[Sink]:
    """Return those of `sinks` for which events are due."""
    return [Sink(*row) for row in await conn.fetch(_DUE, *zip(*sinks, strict=True))]


_LOCK = "select pg_advisory_xact_lock(hashtextextended($1 || '/' || $2, 0))"
_CLAIM = """
with due as (
    select position from reported_events
    where app_id = $1 and sink = $2 and dead_at is null and due_at <= now()
    and not exists (
        select from reported_events where app_id = $1 and sink = $2 and claim_ends_at > now())
    order by due_at, position limit $3
), claimed as (
    update reported_events set claim_ends_at = now() + make_interval(secs => $4)
    from due where reported_events.position = due.position
    returning reported_events.position, event_id, app_id, event, uid, happened_at, data, attempts, due_at
)
select position, event_id, app_id, event, uid, happened_at, data, attempts from claimed order by due_at, position
"""


async def claim(conn: Connection, sink: Sink, *, limit: int, for_s: float) -> list[DueEvent]:
    """Claim at most `limit` due events for `for_s` seconds, and return them, the oldest first.

    Returns none while another worker delivers to the sink, because the events would overtake its events. `conn` is
    in a transaction.
    """
    await conn.execute(_LOCK, *sink)
    return [DueEvent(**row) for row in await conn.fetch(_CLAIM, *sink, limit, for_s)]


async def delivered(conn: Connection, events: Sequence[DueEvent]) -> None:
    """Delete delivered events."""
    await conn.execute("delete from reported_events where position = any($1)", [event.position for event in events])


_FAILED = """
update reported_events set attempts = attempts + 1, error = $2, claim_ends_at = null,
    due_at = now() + make_interval(secs => coalesce($3::float8, 0)), dead_at = case when $3 is null then now() end
where position = $1
"""


async def failed(conn: Connection, event: DueEvent, *, error: str, retry_in_s: float | None) -> None:
    """Record that an attempt has failed. `None`: it was the last one, so the event is dead."""
    await conn.execute(_FAILED, event.position, error, retry_in_s)


async def release(conn: Connection, events: Sequence[DueEvent]) -> None:
    """Release claimed events without a recorded outcome, so that other workers can deliver them."""
    positions = [event.position for event in events]
    await conn.execute("update reported_events set claim_ends_at = null where position = any($1)", positions)


class Filter(NamedTuple):
    """Selects events. The fields are parameters of the SQL statement; `None` matches all."""

    app_id: str | None
    sink: str | None
    status: Status | None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    position: int
    event_id: str
    app_id: str
    sink: str
    event: str
    uid: str
    happened_at: datetime
    attempts: int
    error: str | None
    due_at: datetime
    dead_at: datetime | None


_LIST = f"""
select {", ".join(StoredEvent.__slots__)} from reported_events
where ($1::text is null or app_id = $1) and ($2::text is null or sink = $2)
and ($3::text is null or (dead_at is not null) = ($3 = 'dead')) and ($4::bigint is null or position {{compare}} $4)
order by position {{order}} limit $5
"""


async def listed(
    conn: Connection, which: Filter, *, oldest_first: bool = False, before: int | None, size: int
) -> list[StoredEvent]:
    """Return undelivered events, the newest first unless `oldest_first`; with `before`, those that follow it."""
    statement = directed(_LIST, oldest_first=oldest_first)
    return [StoredEvent(**row) for row in await conn.fetch(statement, *which, before, size)]


_RETRY = """
update reported_events set attempts = 0, due_at = clock_timestamp(), dead_at = null
where app_id = $1 and sink = $2 and ($3::text is null or event_id = $3)
and coalesce(claim_ends_at < now(), true)
"""


async def retry(conn: Connection, sink: Sink, *, event_id: str | None, origin: Origin) -> int:
    """Make one event of a sink, or all of them, due now with all attempts. Return their number.

    `conn` is in a transaction.
    """
    status: str = await conn.execute(_RETRY, *sink, event_id)
    if count := int(status.rpartition(" ")[2]):
        subject = Subject(sink.app_id, "events", sink.name)
        after = {"events": count} | ({} if event_id is None else {"event_id": event_id})
        await record_change(conn, origin, action="events.retry", subject=subject, after=after)
    return count


@dataclass(frozen=True, slots=True)
class SinkCount:
    """The number of undelivered events of a sink."""

    app_id: str
    sink: str
    status: Status
    count: int
    oldest_s: float
    """Seconds since the oldest of these events was due, or 0 if none is due yet."""


_COUNTS = """
select app_id, sink, case when dead_at is null then 'waiting' else 'dead' end as status, count(*) as count,
    greatest(extract(epoch from now() - min(due_at)), 0)::float8 as oldest_s
from reported_events group by 1, 2, 3
"""


async def counts(conn: Connection) -> list[SinkCount]:
    """Return the number of stored events of each sink."""
    return [SinkCount(**row) for row in await conn.fetch(_COUNTS)]


_DEAD = """
select app_id, sink, count(*) as count from reported_events where dead_at is not null
group by 1, 2 order by count(*) desc, 1, 2 limit $1
"""


async def dead_by_sink(conn: Connection, *, limit: int) -> dict[Sink, int]:
    """Return the number of dead events of the sinks that have any, the largest first. An index has all it reads."""
    return {Sink(app_id, sink): count for app_id, sink, count in await conn.fetch(_DEAD, limit)}


_DELETE_EXPIRED = """
with expired as (
    select position from reported_events
    where app_id = $1 and (coalesce(dead_at, due_at) < $2 or sink <> all($3::text[]))
    limit $4 for update skip locked
)
delete from reported_events using expired where reported_events.position = expired.position
"""


async def delete_expired(
    conn: Connection, app_id: str, *, before: datetime, sinks: Sequence[str], limit: int
) -> int:
    """Delete at most `limit` events that have been dead or due since `before`, or whose sink is not in `sinks`.

    `before` is real time. Return their number.
    """
    status: str = await conn.execute(_DELETE_EXPIRED, app_id, before, sinks, limit)
    return int(status.rpartition(" ")[2])
