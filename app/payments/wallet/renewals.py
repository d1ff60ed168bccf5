"""When the asset of a subscription by wallet ends while it renews, and when the subscription is read back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.payments.wallet.wallet import soon
from storage.configs.kinds.walletpay import WalletPay
from storage.payments.wallet.subscriptions import ACTIVE
from vendors.payments.paypal.subscriptions import Subscription, Transaction

_DAY = timedelta(days=1)
_BILLED_WITHIN = timedelta(days=2)
"""How long after the end of a paid period the platform bills at most: at 10:00 UTC or later of the day, and of the
first day of the next month if the month lacks the day."""
_FAILED_EVERY = timedelta(hours=1)
"""How often a subscription is read whose payment has failed. A webhook reports that it was paid."""
LAG = timedelta(hours=1)
"""Payments are listed later than they are made, but not later than this."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """The next payment of a subscription that the platform renews."""

    billed_at: datetime
    tolerance: timedelta

    def end_after(self, paid_ends_at: datetime) -> datetime | None:
        """Return the end of the asset that counts instead of `paid_ends_at`, the end of the last granted period.

        It is the tolerance after the platform is to bill next, and at most the tolerance and `_BILLED_WITHIN` after
        the paid period. A payment that is pending, or not listed yet, has moved the time of the next one by a whole
        period, which must not be granted before it is paid. `None`: the paid period decides.
        """
        end = min(self.billed_at, paid_ends_at + _BILLED_WITHIN) + self.tolerance
        return end if end > paid_ends_at else None


def renewal_of(
    config: WalletPay, subscription: Subscription, transactions: Sequence[Transaction]
) -> Renewal | None:
    """Return the next payment if the platform renews the subscription, and no payment has failed.

    `None`: the paid period decides. `transactions` are all payments, the oldest first, also those that have failed.
    """
    if subscription.status != ACTIVE or subscription.next_payment_at is None:
        return None
    if has_failed(subscription, transactions):
        return None
    return Renewal(subscription.next_payment_at, timedelta(seconds=config.renewal_tolerance_s))


def has_failed(subscription: Subscription, transactions: Sequence[Transaction]) -> bool:
    """Return whether the last payment has failed, at once or after it was pending."""
    return subscription.payment_failed or (bool(transactions) and transactions[-1].is_declined)


def next_read(
    subscription: Subscription, transactions: Sequence[Transaction], *, paid_ends_at: datetime | None, now: datetime
) -> datetime:
    """Return when to read an active subscription back.

    It is read every day, at the end of its paid period, and every minute while a payment is due or not listed yet.
    After a failed payment, it is read every hour until the platform repeats it. A free trial that was not granted,
    because the user has had one, has no paid period.
    """
    if paid_ends_at is not None and now < paid_ends_at:
        return min(paid_ends_at, now + _DAY)
    due_at, last = subscription.next_payment_at, subscription.last_payment
    is_listed = last is None or any(payment.time >= last.time - LAG for payment in transactions)
    is_begun = paid_ends_at is not None or (subscription.plan is not None and subscription.plan.has_free_trial)
    if not is_listed or not is_begun:
        return soon(now)
    if has_failed(subscription, transactions):
        return _read_of_failed(subscription, now=now)
    return soon(now) if due_at is None or due_at <= now else min(due_at, now + _DAY)


def _read_of_failed(subscription: Subscription, *, now: datetime) -> datetime:
    """Return when to read a subscription back whose payment has failed.

    It is read every minute for an hour once the next attempt is due.
    """
    attempts = [at for at in (subscription.retry_at, subscription.next_payment_at) if at is not None]
    if any(at <= now < at + LAG for at in attempts):
        return soon(now)
    return min([now + _FAILED_EVERY, *(at for at in attempts if now < at)])
