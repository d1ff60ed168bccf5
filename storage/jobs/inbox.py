"""The inbox of webhooks: each is stored as it was received, together with the job that processes it.

Times are those of the app's clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from storage.errors import WebhookNotFound
from storage.jobs.jobs import WorkWebhook, enqueue, run_now
from storage.operators.audit import Origin, Subject, record_change
from storage.postgres.database import Connection
from storage.postgres.directions import directed
from streams.wire.ids import new_id
from streams.wire.owned import Owned

WEBHOOK = Owned(WebhookNotFound)
Status = Literal["received", "done", "failed"]


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A verified call by a platform. An id is None if the platform has no such id."""

    app_id: str
    source: str
    config: str
    event_id: str | None
    delivery_id: str | None
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class WebhookState:
    """A stored webhook without its content."""

    webhook_id: str
    app_id: str
    source: str
    config: str
    event_id: str | None
    delivery_id: str | None
    received_at: datetime
    status: Status
    error: str | None
    """Why the last attempt to process it failed."""
    worked_at: datetime | None
    """When the last attempt ended."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A stored webhook. `headers` contains the headers that its source keeps."""

    state: WebhookState
    headers: dict[str, str]
    body: bytes


class Filter(NamedTuple):
    """Selects webhooks. The fields are parameters of the SQL statement; `None` matches all."""

    app_id: str | None
    source: str | None
    status: str | None


_INSERT = """
insert into webhooks (webhook_id, app_id, source, config, event_id, delivery_id, headers, body, received_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict do nothing returning webhook_id
"""


async def receive(conn: Connection, new: NewWebhook, *, now: datetime) -> bool:
    """Store a webhook and its job. Return `False` if its event or its delivery is stored already.

    `conn` must be in a transaction.
    """
    webhook_id: str | None = await conn.fetchval(
        _INSERT,
        new_id(),
        new.app_id,
        new.source,
        new.config,
        new.event_id,
        new.delivery_id,
        new.headers,
        new.body,
        now,
    )
    if webhook_id is None:
        return False
    await _enqueue(conn, new.app_id, webhook_id=webhook_id)
    return True


_STORED = """
select event_id from webhooks where app_id = $1 and source = $2 and config = any($3) and event_id = any($4)
"""


async def stored_events(
    conn: Connection, app_id: str, *, source: str, configs: Sequence[str], event_ids: Sequence[str]
) -> set[str]:
    """Return which events the webhooks of any of these configs have received."""
    return {row["event_id"] for row in await conn.fetch(_STORED, app_id, source, configs, event_ids)}


async def _enqueue(conn: Connection, app_id: str, *, webhook_id: str) -> None:
    job = WorkWebhook(app_id=app_id, webhook_id=webhook_id)
    if (job_id := await enqueue(conn, job, key=f"webhook:{webhook_id}")) is not None:
        await conn.execute("update webhooks set job_id = $2 where webhook_id = $1", webhook_id, job_id)


STATE_COLUMNS = "webhook_id, app_id, source, config, event_id, delivery_id, received_at, status, error, worked_at"

_FIND = f"select {STATE_COLUMNS}, headers, body from webhooks where webhook_id = $1"


async def find(conn: Connection, webhook_id: str) -> Webhook | None:
    row = await conn.fetchrow(_FIND, webhook_id)
    if row is None:
        return None
    state = dict(row)
    headers, body = state.pop("headers"), state.pop("body")
    return Webhook(WebhookState(**state), headers, body)


_LIST = f"""
select {STATE_COLUMNS} from webhooks
where ($1::text is null or app_id = $1) and ($2::text is null or source = $2) and ($3::text is null or status = $3)
and ($4::text is null or webhook_id {{compare}} $4)
order by webhook_id {{order}} limit $5
"""


async def listed(
    conn: Connection, which: Filter, *, oldest_first: bool = False, before: str | None, size: int
) -> Sequence[WebhookState]:
    """Return stored webhooks, the newest first unless `oldest_first`; with `before`, those that follow that one."""
    statement = directed(_LIST, oldest_first=oldest_first)
    return [WebhookState(**row) for row in await conn.fetch(statement, *which, before, size)]


_COUNT_FAILED = "select count(*) from (select from webhooks where status = 'failed' limit $1) found"


async def count_failed(conn: Connection, *, at_most: int) -> int:
    """Return the number of webhooks whose last attempt has failed."""
    count: int = await conn.fetchval(_COUNT_FAILED, at_most)
    return count


async def finish(conn: Connection, webhook_id: str, *, now: datetime, error: str | None) -> None:
    """Record the outcome of an attempt. `error`: why it failed."""
    await conn.execute(
        "update webhooks set status = $2, error = $3, worked_at = $4 where webhook_id = $1",
        webhook_id,
        "done" if error is None else "failed",
        error,
        now,
    )


_LOCK = "select app_id, source, status, job_id from webhooks where webhook_id = $1 for update"


async def replay(conn: Connection, webhook_id: str, *, origin: Origin) -> bool:
    """Make another attempt at a webhook due now, with any status. Return `False` if it is not stored.

    A waiting or held job of the webhook runs again. Otherwise, a new job is stored; if an attempt of the old job is
    running and fails, the old job is dropped. `conn` must be in a transaction. The audit log does not contain the
    error, because it may contain personal data.
    """
    row = await conn.fetchrow(_LOCK, webhook_id)
    if row is None:
        return False
    await conn.execute("update webhooks set status = 'received', error = null where webhook_id = $1", webhook_id)
    if not await run_now(conn, row["job_id"]):
        await _enqueue(conn, row["app_id"], webhook_id=webhook_id)
    subject = Subject(row["app_id"], "webhook", webhook_id)
    before = {"source": row["source"], "status": row["status"]}
    after = before | {"status": "received"}
    await record_change(conn, origin, action="webhook.replay", subject=subject, before=before, after=after)
    return True
