"""The sums that users have paid since a time, by currency, for the overview of operators."""

from dataclasses import dataclass
from datetime import datetime

from storage.postgres.database import Connection


@dataclass(frozen=True, slots=True)
class Taken:
    """The payments for orders in one currency, by card and by wallet."""

    currency: str
    payments: int
    amount: int
    """In minor units."""


# Ids begin with the time in milliseconds, so the primary keys serve as indexes.
_TAKEN = """
select currency, count(*) as payments, sum(amount)::bigint as amount from (
    select currency, amount from card_payments where payment_id >= $1 and status = 'succeeded'
    union all
    select currency, amount from wallet_orders where row_id >= $1 and status = 'COMPLETED'
) paid group by currency order by count(*) desc, currency limit 20
"""


async def taken_since(conn: Connection, since: datetime) -> list[Taken]:
    """Return the payments for orders made since a time, the most frequent currency first."""
    first = f"{int(since.timestamp() * 1000):012x}"
    return [Taken(**row) for row in await conn.fetch(_TAKEN, first)]
