"""Refunds of payments with a card that we make: for closed accounts, and of second subscriptions to a product."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from storage.jobs.jobs import Job, enqueue
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.ids import new_id
from streams.wire.money import Money


class RefundCard(Job):
    """Make the refund of a payment with a card. Retried for up to a day."""

    task: ClassVar[str] = "refund_card"
    attempts: ClassVar[int] = 30
    row_id: str
    app_id: str


@dataclass(frozen=True, slots=True)
class CardRefund:
    """A refund. The fields are columns."""

    row_id: str
    """The key of the call begins with it, and the platform stores it with the refund."""
    app_id: str
    config: str
    sale_id: str
    intent_id: str
    amount: int
    currency: str
    state: str
    """`pending`, `made` (it may still fail) or `failed`."""
    created_at: datetime

    @property
    def money(self) -> Money:
        return Money(self.amount, self.currency)


_COLUMNS = ", ".join(CardRefund.__slots__)
_ADD = f"""
insert into card_refunds ({_COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, 'pending', $8)
on conflict (app_id, config, sale_id) do nothing returning true
"""


async def add(
    conn: Connection, app_id: str, *, config: str, sale_id: str, intent_id: str, money: Money, now: datetime
) -> None:
    """Store that a sale is to be refunded, and the job that does it. `conn` is in a transaction."""
    row_id = new_id()
    if await conn.fetchval(_ADD, row_id, app_id, config, sale_id, intent_id, money.amount, money.currency, now):
        job = RefundCard(app_id=app_id, row_id=row_id)
        await enqueue(conn, job, key=f"{job.task}:{row_id}")


async def get(conn: Connection, app_id: str, *, row_id: str) -> CardRefund:
    """Return a refund that exists."""
    find = f"select {_COLUMNS} from card_refunds where app_id = $1 and row_id = $2"
    return CardRefund(**one(await conn.fetchrow(find, app_id, row_id)))


_REFUNDING = """
select exists (
    select from card_sales join card_refunds using (app_id, config, sale_id)
    where card_sales.app_id = $1 and card_sales.intent_id = $2 and card_refunds.state = 'pending')
"""


async def is_refunding(conn: Connection, app_id: str, *, intent_id: str) -> bool:
    """Return whether a refund of a payment is stored that is not made yet."""
    found: bool = await conn.fetchval(_REFUNDING, app_id, intent_id)
    return found


_MADE = """
update card_refunds set state = 'made', refund_id = $3 where app_id = $1 and row_id = $2 and state = 'pending'
"""
_REFUSED = """
update card_refunds set state = 'failed', problem = $3
where app_id = $1 and row_id = $2 and state = 'pending' returning true
"""
_FAILED = """
update card_refunds set state = 'failed', problem = $3
where app_id = $1 and refund_id = $2 and state = 'made' returning true
"""


async def set_made(conn: Connection, app_id: str, *, row_id: str, refund_id: str | None) -> None:
    """Record that the platform has made or accepted a refund. `refund_id` is `None` if others have made it."""
    await conn.execute(_MADE, app_id, row_id, refund_id)


async def set_refused(conn: Connection, app_id: str, *, row_id: str, problem: str) -> bool:
    """Record that the platform will never make a refund. Return `False` if its result is recorded already."""
    return await conn.fetchval(_REFUSED, app_id, row_id, problem) is not None


async def set_failed(conn: Connection, app_id: str, *, refund_id: str, problem: str) -> bool:
    """Record that a made refund has failed. Return `False` if that is known, or if it is not one of ours."""
    return await conn.fetchval(_FAILED, app_id, refund_id, problem) is not None
