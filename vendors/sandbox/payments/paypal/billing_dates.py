"""When the sandbox's PayPal takes the payments of subscriptions.

PayPal takes the first payment at the approval. It takes later ones at 10:00 UTC or later of their day. A day that a
month lacks is the first of the next month, where the later payments stay ("How subscription billing cycles work",
https://developer.paypal.com/docs/paypal-payments-standard/integration-guide/subscription-billing-cycles/).
"""

from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "YEAR": 12}
_BILLED_AT = time(10)
"""The time of the day, in UTC."""


def billed_on(moment: datetime) -> datetime:
    """Return when payments are taken on the day of `moment`."""
    return datetime.combine(moment.astimezone(UTC).date(), _BILLED_AT, UTC)


def billed_after(moment: datetime, frequency: dict[str, Any]) -> datetime:
    """Return when the payment of the period after the one that begins at `moment` is taken."""
    unit, count = frequency["interval_unit"], frequency.get("interval_count", 1)
    day = moment.date()
    if unit in _DAYS:
        return datetime.combine(day + timedelta(days=_DAYS[unit] * count), _BILLED_AT, UTC)
    months = day.year * 12 + day.month - 1 + _MONTHS[unit] * count
    if day.day > monthrange(months // 12, months % 12 + 1)[1]:
        months, day = months + 1, day.replace(day=1)
    return datetime.combine(date(months // 12, months % 12 + 1, day.day), _BILLED_AT, UTC)
