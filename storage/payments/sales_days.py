"""Sums of what users have paid and got back, by day and currency."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from storage.events.outbox import PurchaseKind
from storage.postgres.database import Connection
from streams.wire.money import Money


@dataclass(frozen=True, slots=True)
class SalesDay:
    """The payments in a currency on one day in UTC. Amounts are in minor units."""

    day: date
    currency: str
    payments: int
    amount: int
    refunds: int
    refunded: int
    """What was given or taken back, less what was won back."""


# Concurrent transactions have different connections, and thus different rows. They neither wait for each other nor
# lock rows in different orders.
_ADD = """
insert into sales_days (app_id, day, currency, kind, part, payments, amount)
values ($1, $2, $3, $4, pg_backend_pid() % 256, 1, $5)
on conflict (app_id, day, currency, kind, part) do update set
    payments = sales_days.payments + 1, amount = sales_days.amount + excluded.amount
"""


async def add(conn: Connection, app_id: str, *, kind: PurchaseKind, money: Money, now: datetime) -> None:
    """Add a payment, or what takes one back, to the sums of its day, in the transaction that stores it."""
    await conn.execute(_ADD, app_id, now.astimezone(UTC).date(), money.currency, kind, money.amount)


_SUMS = """
select day, currency,
    coalesce(sum(payments) filter (where kind in ('charge', 'renewal')), 0)::bigint as payments,
    coalesce(sum(amount) filter (where kind in ('charge', 'renewal')), 0)::bigint as amount,
    coalesce(sum(payments) filter (where kind = 'refund'), 0)::bigint as refunds,
    coalesce(sum(case kind when 'refund' then amount when 'restored' then -amount end), 0)::bigint as refunded
from sales_days where day between $1 and $2 and ($3::text is null or app_id = $3)
group by day, currency order by day, currency
"""


async def between(conn: Connection, *, of_app: str | None, first: date, last: date) -> Sequence[SalesDay]:
    """Return the sums of the days with payments, of one app or of all."""
    return [SalesDay(**row) for row in await conn.fetch(_SUMS, first, last, of_app)]
