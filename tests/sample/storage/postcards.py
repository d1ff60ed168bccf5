"""Rows of postcards."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from storage.accounts import users
from storage.jobs.jobs import Job, enqueue
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.errors import ItemNotFound, listed
from streams.wire.ids import new_id
from streams.wire.owned import Owned


class PostcardNotFound(ItemNotFound):
    """No postcard of the user has this `postcard_id`."""

    def __init__(self, postcard_id: str) -> None:
        super().__init__(f"postcard {listed([postcard_id])} does not exist")


POSTCARD = Owned(PostcardNotFound)


class OrderPostcard(Job):
    """Order a postcard at its printer."""

    task: ClassVar[str] = "order_postcard"
    app_id: str
    postcard_id: str


@dataclass(frozen=True, slots=True)
class Postcard:
    postcard_id: str
    design: str
    text: str
    order_id: str | None
    created_at: datetime
    posted_at: datetime | None


UNPOSTED = "select exists (select from postcards where app_id = $1 and uid = $2 and posted_at is null)"
"""Whether a user has postcards that are not posted yet. The account cannot be deactivated until then."""
_COLUMNS = "postcard_id, design, text, order_id, created_at, posted_at"
_ADD = f"""
insert into postcards (postcard_id, app_id, uid, design, text, created_at) values ($1, $2, $3, $4, $5, $6)
returning {_COLUMNS}
"""


async def add(conn: Connection, app_id: str, uid: str, *, design: str, text: str, now: datetime) -> Postcard:
    """Store a postcard and the job that orders it. `conn` is in a transaction."""
    await users.lock(conn, app_id, uid)
    postcard = Postcard(**one(await conn.fetchrow(_ADD, new_id(), app_id, uid, design, text, now)))
    await enqueue(conn, OrderPostcard(app_id=app_id, postcard_id=postcard.postcard_id))
    return postcard


_FIND = f"select {_COLUMNS} from postcards where app_id = $1 and postcard_id = $2"


async def find(conn: Connection, app_id: str, *, postcard_id: str) -> Postcard | None:
    row = await conn.fetchrow(_FIND, app_id, postcard_id)
    return None if row is None else Postcard(**row)


_PAGE = f"""
select {_COLUMNS} from postcards where app_id = $1 and uid = $2 and ($3::text is null or postcard_id < $3)
order by postcard_id desc limit $4
"""


async def page(conn: Connection, app_id: str, uid: str, *, before: str | None, size: int) -> list[Postcard]:
    """Return the user's postcards, the newest first."""
    return [Postcard(**row) for row in await conn.fetch(_PAGE, app_id, uid, before, size)]


_DELETE = "delete from postcards where app_id = $1 and uid = $2 and postcard_id = $3 returning true"


async def delete(conn: Connection, app_id: str, uid: str, *, postcard_id: str) -> bool | None:
    deleted: bool | None = await conn.fetchval(_DELETE, app_id, uid, postcard_id)
    return deleted


_ORDERED = "update postcards set order_id = $3 where app_id = $1 and postcard_id = $2"


async def set_ordered(conn: Connection, app_id: str, *, postcard_id: str, order_id: str) -> None:
    await conn.execute(_ORDERED, app_id, postcard_id, order_id)


_POSTED = "update postcards set posted_at = $3 where app_id = $1 and postcard_id = $2 and posted_at is null"


async def set_posted(conn: Connection, app_id: str, *, postcard_id: str, now: datetime) -> None:
    await conn.execute(_POSTED, app_id, postcard_id, now)
