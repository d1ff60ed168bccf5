"""Refunds of payments of wallet subscriptions: those that we make, and those that the platform reports."""

from dataclasses import dataclass
from datetime import datetime

from storage.postgres import Connection
from streams.wire.ids import new_id
from streams.wire.money import Money


@dataclass(frozen=True, slots=True)
class PendingRefund:
    """A refund that we are to make."""

    row_id: str
    """Begins the key of the call."""
    sale_id: str
    amount: int
    currency: str
    created_at: datetime

    @property
    def money(self) -> Money:
        return Money(self.amount, self.currency)


_ADD = """
insert into wallet_refunds (row_id, app_id, sale_id, subscription_row, amount, currency, state, ours, created_at)
values ($1, $2, $3, $4, $5, $6, 'pending', true, $7) on conflict (app_id, sale_id) where ours do nothing
returning true
"""


async def add(
    conn: Connection, app_id: str, *, sale_id: str, subscription_row: str, amount: Money, now: datetime
) -> bool:
    """Store that a payment is to be refunded. Return `False` if we refund it already."""
    row = (new_id(), app_id, sale_id, subscription_row, amount.amount, amount.currency, now)
    return await conn.fetchval(_ADD, *row) is not None


_REPORT = """
insert into wallet_refunds
    (row_id, app_id, sale_id, subscription_row, amount, currency, state, ours, refund_id, created_at)
values ($1, $2, $3, $4, $5, $6, 'done', false, $7, $8) on conflict (app_id, refund_id) do nothing
"""


async def report(
    conn: Connection,
    app_id: str,
    *,
    sale_id: str,
    subscription_row: str,
    refund_id: str,
    amount: Money,
    now: datetime,
) -> None:
    """Store a refund that the platform has reported, unless it is known."""
    await conn.execute(
        _REPORT, new_id(), app_id, sale_id, subscription_row, amount.amount, amount.currency, refund_id, now
    )


_REFUNDED = """
select coalesce(sum(amount), 0)::bigint from wallet_refunds
where app_id = $1 and sale_id = $2 and currency = $3 and state <> 'failed'
"""


async def refunded(conn: Connection, app_id: str, *, sale_id: str, currency: str) -> Money:
    """Return how much of a payment is or will be refunded."""
    return Money(await conn.fetchval(_REFUNDED, app_id, sale_id, currency), currency)


_PENDING = """
select row_id, sale_id, amount, currency, created_at from wallet_refunds
where app_id = $1 and subscription_row = $2 and state = 'pending' order by row_id
"""


async def pending(conn: Connection, app_id: str, *, subscription_row: str) -> list[PendingRefund]:
    return [PendingRefund(**row) for row in await conn.fetch(_PENDING, app_id, subscription_row)]


_FORGET_REPORT = "delete from wallet_refunds where app_id = $1 and refund_id = $2 and not ours"
_DONE = """
update wallet_refunds set state = 'done', refund_id = $3
where app_id = $1 and row_id = $2 and state = 'pending' returning true
"""


async def set_done(conn: Connection, app_id: str, *, row_id: str, refund_id: str | None) -> bool:
    """Record that the platform has made a refund. Return `False` if that is recorded already.

    `conn` is in a transaction.

    `refund_id`: the platform's id. It may have reported the refund already. `None`: the id is not known.
    """
    if refund_id is not None:
        await conn.execute(_FORGET_REPORT, app_id, refund_id)
    return await conn.fetchval(_DONE, app_id, row_id, refund_id) is not None


_FAILED = "update wallet_refunds set state = 'failed', problem = $3 where app_id = $1 and row_id = $2"


async def set_failed(conn: Connection, app_id: str, *, row_id: str, problem: str) -> None:
    """Record that the platform refuses a refund for good."""
    await conn.execute(_FAILED, app_id, row_id, problem)
