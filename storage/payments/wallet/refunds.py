"""Refunds of payments of wallet subscriptions: those that we make, and those that the platform reports."""

from dataclasses import dataclass
from datetime import datetime

from storage.postgres.database import Connection
from streams.wire.ids import new_id
from streams.wire.money import Money


@dataclass(frozen=True, slots=True)
class OpenRefund:
    """A refund that is still to be made, or that the platform has accepted but not made yet."""

    row_id: str
    sale_id: str
    amount: int
    currency: str
    created_at: datetime
    refund_id: str | None
    """The platform's id, once it has accepted the refund."""
    reductions: int
    """How often the amount was reduced."""

    @property
    def key(self) -> str:
        """The key of the call. Each amount has its own."""
        return f"{self.row_id}:refund" + (f":{self.reductions}" if self.reductions else "")

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


async def add_reported(
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


_REPORTED = """
select refund_id, amount from wallet_refunds where app_id = $1 and sale_id = $2 and currency = $3 and not ours
"""


async def reported(conn: Connection, app_id: str, *, sale_id: str, currency: str) -> dict[str, Money]:
    """Return the refunds of a payment that the platform has reported and that are not ours, by their ids."""
    rows = await conn.fetch(_REPORTED, app_id, sale_id, currency)
    return {row["refund_id"]: Money(row["amount"], currency) for row in rows}


_OPEN_COLUMNS = ", ".join(OpenRefund.__slots__)
_OPEN = f"""
select {_OPEN_COLUMNS} from wallet_refunds
where app_id = $1 and subscription_row = $2 and state in ('pending', 'accepted') order by row_id
"""


async def open_refunds(conn: Connection, app_id: str, *, subscription_row: str) -> list[OpenRefund]:
    """Return the refunds of a subscription whose result is not known yet."""
    return [OpenRefund(**row) for row in await conn.fetch(_OPEN, app_id, subscription_row)]


_REDUCE = f"""
update wallet_refunds set amount = $4, reductions = reductions + 1
where app_id = $1 and row_id = $2 and state = 'pending' and reductions = $3 returning {_OPEN_COLUMNS}
"""


async def reduce(conn: Connection, app_id: str, *, refund: OpenRefund, to: Money) -> OpenRefund | None:
    """Reduce the amount of a refund. Return `None` if it was reduced or made meanwhile."""
    row = await conn.fetchrow(_REDUCE, app_id, refund.row_id, refund.reductions, to.amount)
    return None if row is None else OpenRefund(**row)


_FORGET_REPORT = "delete from wallet_refunds where app_id = $1 and refund_id = $2 and not ours"
_ACCEPTED = """
update wallet_refunds set state = 'accepted', refund_id = $3
where app_id = $1 and row_id = $2 and state = 'pending'
"""


async def set_accepted(conn: Connection, app_id: str, *, row_id: str, refund_id: str) -> None:
    """Record that the platform has accepted a refund, which may still fail. `conn` is in a transaction."""
    await conn.execute(_FORGET_REPORT, app_id, refund_id)
    await conn.execute(_ACCEPTED, app_id, row_id, refund_id)


_DONE = """
update wallet_refunds set state = 'done', refund_id = coalesce($3, refund_id)
where app_id = $1 and row_id = $2 and state in ('pending', 'accepted') returning true
"""


async def set_done(conn: Connection, app_id: str, *, row_id: str, refund_id: str | None) -> bool:
    """Record that the platform has made a refund. Return `False` if its result is recorded already.

    `refund_id` is the platform's id, or `None` if it is not known. The platform may have reported the refund
    already. `conn` is in a transaction.
    """
    if refund_id is not None:
        await conn.execute(_FORGET_REPORT, app_id, refund_id)
    return await conn.fetchval(_DONE, app_id, row_id, refund_id) is not None


_FAILED = """
update wallet_refunds set state = 'failed', problem = $3
where app_id = $1 and row_id = $2 and state in ('pending', 'accepted') returning true
"""


async def set_failed(conn: Connection, app_id: str, *, row_id: str, problem: str) -> bool:
    """Record that the platform will never make a refund. Return `False` if its result is recorded already."""
    return await conn.fetchval(_FAILED, app_id, row_id, problem) is not None
