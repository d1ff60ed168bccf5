"""Exports of users' data: at most one per user, and the rows that it contains."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from storage.audit import Origin, Subject, record
from storage.jobs import ExportUser, RemoveObjects, enqueue
from storage.postgres import Connection
from streams.wire.ids import new_id


@dataclass(frozen=True, slots=True)
class Export:
    app_id: str
    uid: str
    export_id: str
    requested_at: datetime
    finished_at: datetime | None
    """`None` while the file is being written."""

    @property
    def object_key(self) -> str:
        return f"exports/{self.app_id}/{self.uid}/{self.export_id}.json"


_COLUMNS = "app_id, uid, export_id, requested_at, finished_at"
_FIND = f"select {_COLUMNS} from user_exports where app_id = $1 and uid = $2"  # noqa: S608 - constants
_LOCK = f"{_FIND} for update"
_BEGIN = f"""
insert into user_exports (app_id, uid, export_id, requested_at) values ($1, $2, $3, $4)
on conflict (app_id, uid) do update
set export_id = excluded.export_id, requested_at = excluded.requested_at, finished_at = null
where user_exports.finished_at is not null or not exists (
    select from procrastinate_jobs where task_name = $5 and status in ('todo', 'doing')
    and args ->> 'export_id' = user_exports.export_id)
returning {_COLUMNS}
"""  # noqa: S608 - constants


async def find(conn: Connection, app_id: str, uid: str) -> Export | None:
    """Return the user's last export unless it has expired."""
    row = await conn.fetchrow(_FIND, app_id, uid)
    return None if row is None else Export(**row)


async def request(conn: Connection, app_id: str, uid: str, *, now: datetime, origin: Origin) -> Export:
    """Return the export that is being written, or begin one, which replaces an earlier one.

    An export whose job has been held or dropped is replaced too.

    `conn` is in a transaction.
    """
    earlier = await conn.fetchrow(_LOCK, app_id, uid)
    begun = await conn.fetchrow(_BEGIN, app_id, uid, new_id(), now, ExportUser.task)
    if begun is None:
        return Export(**await conn.fetchrow(_FIND, app_id, uid))
    export = Export(**begun)
    await enqueue(conn, ExportUser(app_id=app_id, uid=uid, export_id=export.export_id))
    if earlier is not None:
        await enqueue(conn, RemoveObjects(keys=[Export(**earlier).object_key]))
    await record(conn, origin, action="user.export", subject=Subject(app_id, "user", uid))
    return export


async def finish(conn: Connection, export: Export, *, now: datetime) -> None:
    """Record that the file of an export is complete."""
    await conn.execute(
        "update user_exports set finished_at = $4 where app_id = $1 and uid = $2 and export_id = $3",
        export.app_id,
        export.uid,
        export.export_id,
        now,
    )


_DELETE = f"""
delete from user_exports where (app_id, uid) in (
    select app_id, uid from user_exports
    where app_id = $1 and coalesce(finished_at, requested_at) < $2 limit $3 for update skip locked)
returning {_COLUMNS}
"""  # noqa: S608 - constants


async def delete_expired(conn: Connection, app_id: str, *, before: datetime, limit: int) -> int:
    """Delete at most `limit` exports that were finished before the given time. Return their number."""
    expired = [Export(**row) for row in await conn.fetch(_DELETE, app_id, before, limit)]
    if expired:
        await enqueue(conn, RemoveObjects(keys=[export.object_key for export in expired]))
    return len(expired)


_ACCOUNT = """
select uid, status, create_time, last_login, name, cuid, freeze_time, close_time
from users where app_id = $1 and uid = $2
"""


async def account(conn: Connection, app_id: str, uid: str) -> dict[str, Any] | None:
    """Return what the user's row says about the user; `None` if there is no such user."""
    row = await conn.fetchrow(_ACCOUNT, app_id, uid)
    return None if row is None else dict(row)


async def identities(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    rows = await conn.fetch(
        "select platform, social_id, create_time from identities where app_id = $1 and uid = $2 order by 1, 2",
        app_id,
        uid,
    )
    return [dict(row) for row in rows]


_CONVERSATIONS = """
select conversation_id, created_at, updated_at from conversations
where app_id = $1 and uid = $2 and conversation_id > $3 order by conversation_id limit $4
"""


async def conversations(conn: Connection, app_id: str, uid: str, *, after: str, limit: int) -> list[dict[str, Any]]:
    """Return at most `limit` conversations whose ids come after `after`, ordered by id."""
    return [dict(row) for row in await conn.fetch(_CONVERSATIONS, app_id, uid, after, limit)]
