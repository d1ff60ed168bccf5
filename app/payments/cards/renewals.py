"""When the asset of a subscription with a card ends while it renews, and when the subscription is read back."""

from datetime import UTC, datetime, timedelta

from vendors.payments.stripe.objects import Subscription

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_DRAFT = timedelta(hours=1, minutes=5)
"""For about an hour after the begin of a period, its invoice is not charged."""
_CHARGED_WITHIN = timedelta(days=3)
"""Stripe charges an invoice at most three days late, unless the merchant has paused that."""


def grace_end(subscription: Subscription, paid_ends_at: datetime, *, tolerance_s: int) -> datetime | None:
    """Return the end of the asset if it is not that of the paid period.

    While the subscription renews and no payment has failed, the asset lasts until the next payment and the
    tolerance after it. It never lasts longer than until the date to which the subscription was cancelled.
    """
    end, billed_at = paid_ends_at, subscription.billed_after(int(paid_ends_at.timestamp()))
    if billed_at is not None:
        end = max(end, _moment(billed_at) + timedelta(seconds=tolerance_s))
    if subscription.cancel_at is not None:
        end = min(end, _moment(subscription.cancel_at))
    return None if end == paid_ends_at else end


def next_read(paid_ends_at: datetime | None, *, now: datetime) -> datetime:
    """Return when to read a subscription back: before its renewal, at it, and from then on until it is paid."""
    if paid_ends_at is None:
        return now
    if now >= paid_ends_at + _CHARGED_WITHIN:
        return now + _HOUR
    times = (paid_ends_at - _DAY, paid_ends_at, paid_ends_at + _DRAFT)
    return next((at for at in times if now < at), now)


def _moment(epoch_s: int) -> datetime:
    return datetime.fromtimestamp(epoch_s, UTC)
