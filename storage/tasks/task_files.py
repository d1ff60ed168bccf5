"""Files of users' tasks: uploads by users, and files that hosts have made."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, get_args

from storage.jobs.jobs import RemoveObjects, enqueue
from storage.postgres.database import Connection
from streams.wire.ids import new_id

Origin = Literal["uploads", "predictions", "images"]
"""The maker of a file: the user, or a host of models or images."""
_ORIGINS: tuple[Origin, ...] = get_args(Origin)


def folders_of_app(app_id: str) -> list[str]:
    """Return the folders with all files of an app's users."""
    return [f"{origin}/{app_id}/" for origin in _ORIGINS]


def folders_of(app_id: str, uid: str) -> list[str]:
    """Return the folders with all files of a user."""
    return [f"{folder}{uid}/" for folder in folders_of_app(app_id)]


def new_key(app_id: str, uid: str, *, origin: Origin, extension: str) -> str:
    """Return a random key for a file of a user."""
    return f"{origin}/{app_id}/{uid}/{new_id()}.{extension}"


_ADD = """
insert into task_files (file_key, app_id, uid, created_at)
select $3, app_id, uid, $4 from users where app_id = $1 and uid = $2 and status <> 'deactivated'
returning true
"""


async def add(conn: Connection, app_id: str, uid: str, *, key: str, now: datetime) -> bool:
    """Store the owner of a file. This precedes storing the file, so that every file can be deleted.

    Return `False` if the user is deactivated. The file must then not be stored.
    """
    return await conn.fetchval(_ADD, app_id, uid, key, now) is not None


_IS_OF = "select exists (select from task_files where app_id = $1 and uid = $2 and file_key = $3)"


async def is_of(conn: Connection, app_id: str, uid: str, *, key: str) -> bool:
    """Return whether the user has this file."""
    found: bool = await conn.fetchval(_IS_OF, app_id, uid, key)
    return found


_DELETE_EXPIRED = """
delete from task_files where file_key in (
    select file_key from task_files where app_id = $1 and created_at < $2 order by created_at limit $3)
returning file_key
"""


async def delete_expired(
    conn: Connection, app_id: str, *, before: datetime, limit: int, left: Sequence[str] = ()
) -> int:
    """Delete at most `limit` files that were stored before a time. `conn` is in a transaction.

    `left`: folders whose files the bucket deletes by itself. Only their rows are deleted.
    """
    keys = [row["file_key"] for row in await conn.fetch(_DELETE_EXPIRED, app_id, before, limit)]
    if removed := [key for key in keys if not key.startswith(tuple(left))]:
        await enqueue(conn, RemoveObjects(keys=removed))
    return len(keys)
