"""Deletion by age: how long rows and files of an app are kept, and how expired ones are deleted."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal, NamedTuple, Protocol

import structlog

from storage.accounts import logins
from storage.configs.kinds.auth import AUTH
from storage.configs.kinds.base import DAY_S
from storage.configs.kinds.events import EVENTS
from storage.configs.kinds.limits import Limits
from storage.configs.store import ConfigStore
from storage.conversations import deletion
from storage.conversations.speech_files import day_of
from storage.events import queue
from storage.jobs import idempotency
from storage.jobs.jobs import due_in
from storage.objects import ObjectStore
from storage.objects.lifecycle import Lifecycle
from storage.operators import audit
from storage.postgres import partitions
from storage.postgres.batches import Deletion, delete_in_batches, delete_page_by_page
from storage.postgres.database import Connection, Database
from storage.postgres.partitions import Partitioned
from storage.tasks import task_files as files
from storage.userdata import file_ages

log = structlog.get_logger()

_ROWS_AT_ONCE = 1000
_PAGES_AT_ONCE = 1000
_CONVERSATIONS_AT_ONCE = 100
_FILES_AT_ONCE = 100
_RESTORABLE = timedelta(days=30)
"""How long the conversations of a deleted app are kept, because it may be restored."""

LimitInDays = Literal["export_days", "login_failure_days", "mail_days", "task_days", "webhook_days"]


@dataclass(frozen=True, slots=True)
class KeptApp:
    """An app, the limits on how long its data is kept, and the stores of the data."""

    app_id: str
    now: datetime
    """The time of the app's clock."""
    limits: Limits
    deleted_at: datetime | None
    """When the app was deleted; `None` if it exists."""
    configs: ConfigStore
    database: Database
    objects: ObjectStore
    lifecycle: Lifecycle
    """The files that the object store deletes by itself."""

    async def delete(self, rows: Deletion, *, size: int = _ROWS_AT_ONCE) -> int:
        return await delete_in_batches(self.database, rows, size=size)


Removal = Callable[[KeptApp], Awaitable[int]]
"""Deletes the expired data of an app. Returns the number of rows or files."""


class KeptDays(NamedTuple):
    """For how many days the settings keep rows that belong to no single app. `None`: they are never deleted."""

    audit: int
    attempts: int | None


class RemovalForAllApps(Protocol):
    async def __call__(self, database: Database, *, kept: KeptDays) -> int:
        """Delete the expired rows of a table whose rows belong to no single app. Return their number."""


class DeleteBefore(Protocol):
    async def __call__(self, conn: Connection, app_id: str, *, before: datetime, limit: int) -> int:
        """Delete at most `limit` rows whose time is before the given one. Return their number."""


@dataclass(frozen=True, slots=True)
class After:
    """Rows that expire at an age."""

    time: str | DeleteBefore
    """The column with the time of a row, or a function that deletes the rows before a time."""
    kept: timedelta | LimitInDays = timedelta()
    """How long rows are kept after that time, or the name of the app's limit that defines it."""
    only: str = "true"
    """A condition. Rows that do not match it never expire."""

    async def remove(self, app: KeptApp, table: str) -> int:
        kept = self.kept if isinstance(self.kept, timedelta) else timedelta(days=getattr(app.limits, self.kept))
        delete = rows_before(table, self.time, only=self.only) if isinstance(self.time, str) else self.time
        return await app.delete(partial(delete, app_id=app.app_id, before=app.now - kept))


def rows_before(table: str, time: str, *, only: str = "true") -> DeleteBefore:
    """Return the deletion of rows of a table by the column `time`."""
    # The rows are found again by `ctid`, which works with any primary key. They are locked, so it does not change.
    statement = f"""
        delete from {table} where ctid = any(array(
            select ctid from {table} where app_id = $1 and {time} < $2 and {only} limit $3 for update skip locked))
    """

    async def delete(conn: Connection, app_id: str, *, before: datetime, limit: int) -> int:
        status: str = await conn.execute(statement, app_id, before, limit)
        return int(status.rpartition(" ")[2])

    return delete


async def sessions(app: KeptApp) -> int:
    sliding_s = app.configs.singleton(AUTH, app.app_id).session_sliding_s
    delete = partial(logins.delete_dead_sessions, app_id=app.app_id, now=app.now, sliding_s=sliding_s)
    return await delete_page_by_page(app.database, "sessions", delete, size=_PAGES_AT_ONCE)


async def conversations(app: KeptApp) -> int:
    """Delete conversations that had no turn for `conversation_days`, and those of apps deleted 30 days ago."""
    kept = None if app.limits.conversation_days is None else timedelta(days=app.limits.conversation_days)
    if app.deleted_at is not None and app.deleted_at < app.now - _RESTORABLE:
        kept = _RESTORABLE  # None of the app's conversations has had a turn since the app was deleted.
    if kept is None:
        return 0
    delete = partial(deletion.delete_expired, app_id=app.app_id, before=app.now - kept)
    return await app.delete(delete, size=_CONVERSATIONS_AT_ONCE)


async def speech(app: KeptApp) -> int:
    """Delete whole days of audio after `speech_days`, when all links of the day have expired."""
    expiry = file_ages.speech(app.app_id, app.limits)
    if app.lifecycle.deletes(expiry):
        return 0
    removed, first_kept = 0, (app.now - timedelta(days=expiry.days)).date()
    for folder in await app.objects.folders(expiry.prefix):
        if (day := day_of(folder)) is not None and day < first_kept:
            removed += await delete_folder(app.objects, folder)
    return removed


async def task_files(app: KeptApp) -> int:
    """Delete files of tasks after `task_days`, and only their rows if the object store deletes them by itself."""
    expiries = file_ages.files_of_tasks(app.app_id, app.limits)
    left = [expiry.prefix for expiry in expiries if app.lifecycle.deletes(expiry)]
    before = app.now - timedelta(days=app.limits.task_days)
    return await app.delete(partial(files.delete_expired, app_id=app.app_id, before=before, left=left))


async def reported_events(app: KeptApp) -> int:
    """Delete events that no sink has accepted within `event_days` of real time, and events of deleted sinks."""
    before, sinks = due_in(-app.limits.event_days * DAY_S), app.configs.names(EVENTS, app.app_id)
    return await app.delete(partial(queue.delete_expired, app_id=app.app_id, before=before, sinks=sinks))


async def idempotency_keys(database: Database, *, kept: KeptDays) -> int:
    return await delete_in_batches(database, idempotency.delete_expired, size=_ROWS_AT_ONCE)


async def audit_entries(database: Database, *, kept: KeptDays) -> int:
    """Drop partitions that have expired as a whole. Return the number of rows that are deleted from the others."""
    await _drop_partitions(database, partitions.AUDIT, days=kept.audit)
    delete = partial(audit.delete_expired, days=kept.audit)
    return await delete_in_batches(database, delete, size=_ROWS_AT_ONCE)


async def attempts(database: Database, *, kept: KeptDays) -> int:
    """Drop partitions that have expired as a whole. No row is deleted from the others."""
    if kept.attempts is not None:
        await _drop_partitions(database, partitions.ATTEMPTS, days=kept.attempts)
    return 0


async def _drop_partitions(database: Database, table: Partitioned, *, days: int) -> None:
    for name in await partitions.drop_expired(database, table, kept=timedelta(days=days), now=datetime.now(UTC)):
        log.info("partition.dropped", table=table.name, partition=name)


async def delete_folder(objects: ObjectStore, folder: str) -> int:
    """Delete all files in a folder. Return their number."""
    count = 0
    while keys := await objects.keys(folder, limit=_FILES_AT_ONCE):
        await objects.delete(keys)
        count += len(keys)
    return count
