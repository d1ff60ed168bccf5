"""Admin API: what users have paid and got back, by day and currency."""

from datetime import UTC, date, timedelta
from typing import Annotated

from pydantic import BeforeValidator

from app.admin.area import FOR_VIEWERS
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from storage.payments import sales_days
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model

_DAYS = timedelta(days=30)
_DAY_LENGTH = len("2026-01-31")
_MAX_DAYS = timedelta(days=366)


def _day_of(value: object) -> object:
    """Return the day that a text of a query names."""
    try:
        return date.fromisoformat(value) if isinstance(value, str) and len(value) == _DAY_LENGTH else value
    except ValueError:
        return value


Day = Annotated[date, BeforeValidator(_day_of)]


class SalesQuery(Model):
    app: str | None = None
    """Count only payments of this app."""
    first: Day | None = None
    """The first day in UTC. Absent: 29 days before the last one."""
    last: Day | None = None
    """The last day in UTC. Absent: today."""


class SalesRow(Model):
    day: str
    """The day in UTC."""
    currency: str
    payments: int
    """The number of payments: orders, first payments of subscriptions, and renewals."""
    amount: int
    """Their sum in minor units of the currency."""
    refunds: int
    """How often a payment, or a part of it, was given or taken back."""
    refunded: int
    """The sum of that, less what was won back. Parts that the merchant has refunded count once nothing is left."""


class SalesReply(Model):
    """The sums of each day and currency."""

    first: str
    last: str
    sales: list[SalesRow]
    """The days with payments or refunds, the earliest first."""


async def read_sales(call: Call, query: Query[SalesQuery]) -> SalesReply:
    """Read the sums of payments and refunds by day and currency.

    At most 366 days are read.

    Payments are counted since the version that has added this list. A day begins at midnight in UTC.
    """
    last = query.last or call.services.clock.now(query.app or "default").astimezone(UTC).date()
    first = query.first or max(date.min + _DAYS, last) - _DAYS + timedelta(days=1)
    if first > last:
        raise InvalidParameter("first must not be after last")
    if last - first >= _MAX_DAYS:
        raise InvalidParameter(f"first must be at most {_MAX_DAYS.days} days before last")
    found = await call.services.reads.read(
        lambda conn: sales_days.between(conn, of_app=query.app, first=first, last=last)
    )
    rows = [
        SalesRow(
            day=each.day.isoformat(), currency=each.currency, payments=each.payments, amount=each.amount,
            refunds=each.refunds, refunded=each.refunded,
        )
        for each in found
    ]  # fmt: skip
    return SalesReply(first=first.isoformat(), last=last.isoformat(), sales=rows)


SALES_ROUTES = [Endpoint("GET", "/admin/api/payments/sales", read_sales, FOR_VIEWERS)]
