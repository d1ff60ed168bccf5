"""Computes the refund of a payment whose subscription is replaced. The arithmetic is exact."""

from datetime import datetime, timedelta

from streams.wire.money import Money
from vendors.payments.paypal.fields import rounded_part

_SECOND = timedelta(seconds=1)


def unused_part(payment: Money, *, start: datetime, end: datetime, at: datetime) -> Money:
    """Return the part of a payment for the time from `start` to `end` that is unused at `at`.

    It is proportional to the full seconds that are left, and rounded half up to an amount that the platform can
    pay.
    """
    period_s = (end - start) // _SECOND
    left_s = min(max((end - at) // _SECOND, 0), period_s)
    return rounded_part(payment, left_s, period_s) if period_s > 0 else Money(0, payment.currency)


def part_of_unused_units(payment: Money, *, granted: int, used: int) -> Money:
    """Return the part of a payment for the granted units that are not used, rounded as in `unused_part`.

    It is the whole payment if it has granted no units.
    """
    return rounded_part(payment, max(granted - used, 0), granted) if granted else payment


def refund_due(
    payment: Money,
    *,
    refunded: Money,
    start: datetime,
    end: datetime,
    at: datetime,
    granted: int = 0,
    used: int = 0,
) -> Money:
    """Return the amount to refund at `at`.

    It is the smaller of the parts for the unused time and for the unused units, and at most what is left of the
    payment after other refunds. `granted` and `used` are units of the period.
    """
    left = max(payment - refunded, Money(0, payment.currency))
    unused_time = unused_part(payment, start=start, end=end, at=at)
    return min(unused_time, part_of_unused_units(payment, granted=granted, used=used), left)
