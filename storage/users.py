"""Rows of users (§2.3)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from storage.postgres import Connection

Status = Literal["active", "frozen", "deactivated"]


@dataclass(frozen=True, slots=True)
class User:
    """A frozen user waits from `freeze_time` to `close_time` for its deactivation; others have neither."""

    uid: str
    status: Status
    create_time: datetime
    name: str
    cuid: str
    freeze_time: datetime | None
    close_time: datetime | None


_COLUMNS = "uid, status, create_time, name, cuid, freeze_time, close_time"

_FIND = f"select {_COLUMNS} from users where app_id = $1 and uid = $2 and status <> 'deactivated'"  # noqa: S608 - constants


async def find(conn: Connection, uid: str, *, app_id: str) -> User | None:
    """The user, unless it is deactivated: then it exists no more."""
    row = await conn.fetchrow(_FIND, app_id, uid)
    return None if row is None else User(**row)


_ENTER = f"""
update users set last_login = $3, cuid = coalesce($4, cuid)
where app_id = $1 and uid = $2 and status <> 'deactivated'
returning {_COLUMNS}
"""  # noqa: S608 - constants


async def enter(conn: Connection, uid: str, *, app_id: str, now: datetime, cuid: str | None) -> User | None:
    """Note a login. It locks the user's row: logins of one user follow each other."""
    row = await conn.fetchrow(_ENTER, app_id, uid, now, cuid)
    return None if row is None else User(**row)
