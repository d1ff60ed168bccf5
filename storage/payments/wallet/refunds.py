"""Refunds of payments by wallet that we make, of subscriptions and of orders."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from storage.jobs.jobs import Job
from storage.postgres.database import Connection
from streams.wire.ids import new_id
from streams.wire.money import Money


class RefundOrder(Job):
    """Make the refunds of an order, whose user has closed the account. Retried for up to a day."""

    task: ClassVar[str] = "refund_order"
    attempts: ClassVar[int] = 30
    app_id: str
    row_id: str


@dataclass(frozen=True, slots=True)
class OpenRefund:
    """A refund that is still to be made, or that the platform has accepted but not made yet."""

    row_id: str
    sale_id: str
    """The payment: a sale of a subscription, or the capture of an order."""
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
insert into wallet_refunds
    (row_id, app_id, sale_id, subscription_row, order_row, amount, currency, state, created_at)
values ($1, $2, $3, $4, $5, $6, $7, 'pending', $8) on conflict (app_id, sale_id) where ours do nothing
returning true
"""


async def add(
    conn: Connection,
    app_id: str,
    *,
    sale_id: str,
    subscription_row: str | None = None,
    order_row: str | None = None,
    amount: Money,
    now: datetime,
) -> bool:
    """Store that a payment of a subscription or of an order is to be refunded.

    Return `False` if we refund it already.
    """
    row = (new_id(), app_id, sale_id, subscription_row, order_row, amount.amount, amount.currency, now)
    return await conn.fetchval(_ADD, *row) is not None


_UNREPORTED = """
select coalesce(sum(amount), 0)::bigint from wallet_refunds refund
where app_id = $1 and sale_id = $2 and currency = $3 and state <> 'failed' and not exists (
    select from payment_reversals where app_id = $1 and platform = 'walletpay' and payment_id = $2
        and reversal_id = refund.refund_id and state = 'taken')
"""


async def unreported(conn: Connection, app_id: str, *, sale_id: str, currency: str) -> Money:
    """Return how much of a payment we refund or have refunded that the platform has not reported."""
    return Money(await conn.fetchval(_UNREPORTED, app_id, sale_id, currency), currency)


_OPEN_COLUMNS = ", ".join(OpenRefund.__slots__)
_OPEN = f"""
select {_OPEN_COLUMNS} from wallet_refunds
where app_id = $1 and (subscription_row = $2 or order_row = $2) and state in ('pending', 'accepted') order by row_id
"""


async def open_refunds(conn: Connection, app_id: str, *, paid_row: str) -> list[OpenRefund]:
    """Return the refunds of a subscription or an order whose result is not known yet."""
    return [OpenRefund(**row) for row in await conn.fetch(_OPEN, app_id, paid_row)]


async def is_refunding(conn: Connection, app_id: str, *, paid_row: str) -> bool:
    return bool(await open_refunds(conn, app_id, paid_row=paid_row))


_REDUCE = f"""
update wallet_refunds set amount = $4, reductions = reductions + 1
where app_id = $1 and row_id = $2 and state = 'pending' and reductions = $3 returning {_OPEN_COLUMNS}
"""


async def reduce(conn: Connection, app_id: str, *, refund: OpenRefund, to: Money) -> OpenRefund | None:
    """Reduce the amount of a refund. Return `None` if it was reduced or made meanwhile."""
    row = await conn.fetchrow(_REDUCE, app_id, refund.row_id, refund.reductions, to.amount)
    return None if row is None else OpenRefund(**row)


_ACCEPTED = """
update wallet_refunds set state = 'accepted', refund_id = $3
where app_id = $1 and row_id = $2 and state = 'pending'
"""


async def set_accepted(conn: Connection, app_id: str, *, row_id: str, refund_id: str) -> None:
    """Record that the platform has accepted a refund, which may still fail."""
    await conn.execute(_ACCEPTED, app_id, row_id, refund_id)


_DONE = """
update wallet_refunds set state = 'done', refund_id = coalesce($3, refund_id)
where app_id = $1 and row_id = $2 and state in ('pending', 'accepted') returning true
"""


async def set_done(conn: Connection, app_id: str, *, row_id: str, refund_id: str | None) -> bool:
    """Record that the platform has made a refund. Return `False` if its result is recorded already.

    `refund_id` is the platform's id, or `None` if it is not known.
    """
    return await conn.fetchval(_DONE, app_id, row_id, refund_id) is not None


_FAILED = """
update wallet_refunds set state = 'failed', problem = $3
where app_id = $1 and row_id = $2 and state in ('pending', 'accepted') returning true
"""


async def set_failed(conn: Connection, app_id: str, *, row_id: str, problem: str) -> bool:
    """Record that the platform will never make a refund. Return `False` if its result is recorded already."""
    return await conn.fetchval(_FAILED, app_id, row_id, problem) is not None
