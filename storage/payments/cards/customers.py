"""The customers of users at the card platform."""

from dataclasses import dataclass
from datetime import datetime

from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.ids import new_id


@dataclass(frozen=True, slots=True)
class CardCustomer:
    row_id: str
    """Part of the key of the call that creates the customer."""
    customer_id: str | None


_ADD = """
insert into card_customers (app_id, uid, config, row_id, created_at) values ($1, $2, $3, $4, $5)
on conflict do nothing
"""
_FIND = "select row_id, customer_id from card_customers where app_id = $1 and uid = $2 and config = $3"


async def ensure(conn: Connection, app_id: str, uid: str, *, config: str, now: datetime) -> CardCustomer:
    """Return the row of a user. Store it if it is missing."""
    if (found := await find(conn, app_id, uid, config=config)) is not None:
        return found
    await conn.execute(_ADD, app_id, uid, config, new_id(), now)
    return CardCustomer(**one(await conn.fetchrow(_FIND, app_id, uid, config)))


async def find(conn: Connection, app_id: str, uid: str, *, config: str) -> CardCustomer | None:
    row = await conn.fetchrow(_FIND, app_id, uid, config)
    return None if row is None else CardCustomer(**row)


_SET = "update card_customers set customer_id = $2 where row_id = $1"


async def set_customer(conn: Connection, row_id: str, *, customer_id: str) -> None:
    await conn.execute(_SET, row_id, customer_id)


_FORGET = "delete from card_customers where app_id = $1 and uid = $2 and config = $3 and customer_id = $4"


async def forget(conn: Connection, app_id: str, uid: str, *, config: str, customer_id: str) -> None:
    """Forget a customer that was deleted at the platform."""
    await conn.execute(_FORGET, app_id, uid, config, customer_id)
