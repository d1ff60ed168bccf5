"""Computes the refund of a payment whose period ends early. The arithmetic is exact."""

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


def refund_due(payment: Money, *, refunded: Money, start: datetime, end: datetime, at: datetime) -> Money:
    """Return the amount to refund at `at`: the unused part, less any amount that is refunded already."""
    left = max(payment - refunded, Money(0, payment.currency))
    return min(unused_part(payment, start=start, end=end, at=at), left)
