"""Exports of users' data: at most one per user."""

from dataclasses import dataclass
from datetime import datetime

from storage.jobs.jobs import ExportUser, RemoveObjects, enqueue
from storage.operators.audit import Origin, Subject, record_change
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.ids import new_id


@dataclass(frozen=True, slots=True)
class Export:
    app_id: str
    uid: str
    export_id: str
    requested_at: datetime
    finished_at: datetime | None
    """`None` until the file is complete."""
    failed: bool
    """Whether the file is incomplete and no job writes it, because the job is held or was deleted."""

    @property
    def object_key(self) -> str:
        return object_key(self.app_id, self.uid, self.export_id)


def folder(app_id: str) -> str:
    """Return the folder with all exports of an app."""
    return f"exports/{app_id}/"


def object_key(app_id: str, uid: str, export_id: str) -> str:
    """Return the key of the file of an export."""
    return f"{folder(app_id)}{uid}/{export_id}.json"


_HAS_JOB = f"""
exists (
    select from procrastinate_jobs where task_name = '{ExportUser.task}' and status in ('todo', 'doing')
    and args ->> 'export_id' = user_exports.export_id)
"""
_COLUMNS = f"""
app_id, uid, export_id, requested_at, finished_at, finished_at is null and not {_HAS_JOB} as failed
"""
_FIND = f"select {_COLUMNS} from user_exports where app_id = $1 and uid = $2"
_LOCK = f"{_FIND} for update"
_BEGIN = f"""
insert into user_exports (app_id, uid, export_id, requested_at) values ($1, $2, $3, $4)
on conflict (app_id, uid) do update
set export_id = excluded.export_id, requested_at = excluded.requested_at, finished_at = null
where user_exports.finished_at is not null or not {_HAS_JOB}
returning export_id
"""


async def find(conn: Connection, app_id: str, uid: str) -> Export | None:
    """Return the user's last export unless it has expired."""
    row = await conn.fetchrow(_FIND, app_id, uid)
    return None if row is None else Export(**row)


async def request(conn: Connection, app_id: str, uid: str, *, now: datetime, origin: Origin) -> Export:
    """Return the export that is being written, or begin a new one, which replaces a finished or failed one.

    `conn` is in a transaction.
    """
    earlier = await conn.fetchrow(_LOCK, app_id, uid)
    export_id = await conn.fetchval(_BEGIN, app_id, uid, new_id(), now)
    if export_id is not None:
        await enqueue(conn, ExportUser(app_id=app_id, uid=uid, export_id=export_id))
        if earlier is not None:
            await enqueue(conn, RemoveObjects(keys=[Export(**earlier).object_key]))
        await record_change(conn, origin, action="user.export", subject=Subject(app_id, "user", uid))
    return Export(**one(await conn.fetchrow(_FIND, app_id, uid)))


_FINISH = """
update user_exports set finished_at = $4 where app_id = $1 and uid = $2 and export_id = $3 returning true
"""


async def finish(conn: Connection, export: Export, *, now: datetime) -> bool:
    """Record that the file of an export is complete. Return false if the export does not exist any more."""
    key = (export.app_id, export.uid, export.export_id)
    return await conn.fetchval(_FINISH, *key, now) is not None


_ERASE = f"delete from user_exports where app_id = $1 and uid = $2 returning {_COLUMNS}"


async def erase(conn: Connection, app_id: str, uid: str) -> int:
    """Delete the export of a user. Return the number of exports."""
    found = [Export(**row) for row in await conn.fetch(_ERASE, app_id, uid)]
    if found:
        await enqueue(conn, RemoveObjects(keys=[export.object_key for export in found]))
    return len(found)


_DELETE = f"""
delete from user_exports where (app_id, uid) in (
    select app_id, uid from user_exports
    where app_id = $1 and coalesce(finished_at, requested_at) < $2 limit $3 for update skip locked)
returning {_COLUMNS}
"""


async def delete_expired(conn: Connection, app_id: str, *, before: datetime, limit: int) -> int:
    """Delete at most `limit` exports that were finished before the given time. Return their number."""
    expired = [Export(**row) for row in await conn.fetch(_DELETE, app_id, before, limit)]
    if expired:
        await enqueue(conn, RemoveObjects(keys=[export.object_key for export in expired]))
    return len(expired)
