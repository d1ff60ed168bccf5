"""What a user is owed by the books of the platform alone: units, and the ends of subscriptions.

This follows the pages for users (Renewals, Refunds and chargebacks), and uses none of the server's code or tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from streams.wire.period import Period

DAY = timedelta(days=1)
TOLERANCE = DAY
GRACE = timedelta(days=10)
BILLED_WITHIN = 2 * DAY
PAID = {"COMPLETED", "PARTIALLY_REFUNDED", "REFUNDED"}
COINS = 100
"""The units of an order."""


@dataclass(frozen=True)
class Plan:
    """What a payment of a plan grants."""

    asset: str
    period: str
    units: int


@dataclass(frozen=True)
class Payment:
    """A capture or a sale that was made, by the books."""

    id: str
    of: str
    """Its order or its subscription."""
    plan_id: str
    at: datetime
    amount: int
    taken: int
    """What reversals and disputes have taken of it, in minor units."""
    by_hand: int
    """What the merchant has refunded on the platform's pages."""
    by_call: int
    """What the server has refunded."""

    @property
    def is_lost(self) -> bool:
        return self.taken + self.by_hand + self.by_call >= self.amount

    @property
    def coins(self) -> int:
        """The units of an order that are left. Halves of what is taken are rounded up."""
        return 0 if self.is_lost else COINS - (2 * COINS * self.taken + self.amount) // (2 * self.amount)


@dataclass(frozen=True)
class Subscription:
    """A subscription by the books, with its payments, the oldest first."""

    id: str
    status: str
    plan_id: str
    payments: Sequence[Payment]
    next_at: datetime | None
    due_at: datetime | None
    has_failed: bool
    """Whether a payment has failed since the last one that was made."""

    @property
    def last(self) -> Payment | None:
        return self.payments[-1] if self.payments else None

    @property
    def is_paid(self) -> bool:
        """Whether it is active, and its last payment was made and not taken back, and none has failed since."""
        last = self.last
        return self.status == "ACTIVE" and last is not None and not last.is_lost and not self.has_failed


class Books:
    """All that has happened at the platform, for the one user of a merchant."""

    def __init__(self, found: Mapping[str, Any], plans: Mapping[str, Plan]) -> None:
        self.plans = plans
        self._refunds = [refund for refund in found["refunds"] if refund["status"] == "COMPLETED"]
        self._disputes = found["disputes"]
        made = sorted(found["payments"], key=lambda payment: moment(payment["at"]))
        self.payments = {row["id"]: self._payment(row) for row in made if row["status"] in PAID}
        self.pending = [payment for payment in found["payments"] if payment["status"] == "PENDING"]
        self.orders = [payment for payment in self.payments.values() if not payment.plan_id]
        self.subscriptions = {row["id"]: self._subscription(row, made) for row in found["subscriptions"]}
        self.open_disputes = [dispute["id"] for dispute in self._disputes if dispute["outcome"] is None]
        self.decided_disputes = [dispute["id"] for dispute in self._disputes if dispute["outcome"] is not None]

    def disputed(self, *, is_open: bool = False) -> set[str]:
        """The payments that were disputed, or that still are."""
        return {dispute["payment_id"] for dispute in self._disputes if dispute["outcome"] is None or not is_open}

    def _payment(self, row: Mapping[str, Any]) -> Payment:
        refunds = [refund for refund in self._refunds if refund["payment_id"] == row["id"]]
        reversed_ = sum(refund["amount"] for refund in refunds if refund["is_reversal"])
        disputed = sum(
            dispute["amount"] - dispute["reversed"]
            for dispute in self._disputes
            if dispute["payment_id"] == row["id"] and dispute["outcome"] is None
        )
        made = [refund for refund in refunds if not refund["is_reversal"]]
        return Payment(
            row["id"],
            row["order_id"] or row["subscription_id"],
            row["plan_id"],
            moment(row["at"]),
            row["amount"],
            taken=reversed_ + disputed,
            by_hand=sum(refund["amount"] for refund in made if not refund["by_call"]),
            by_call=sum(refund["amount"] for refund in made if refund["by_call"]),
        )

    def _subscription(self, row: Mapping[str, Any], made: Sequence[Mapping[str, Any]]) -> Subscription:
        tried = [payment for payment in made if payment["subscription_id"] == row["id"]]
        paid = [self.payments[payment["id"]] for payment in tried if payment["id"] in self.payments]
        failed_at = row["failed_at"] and moment(row["failed_at"])
        is_declined = bool(tried) and tried[-1]["status"] == "DECLINED"
        return Subscription(
            row["id"],
            row["status"],
            row["plan_id"],
            paid,
            row["next_at"] and moment(row["next_at"]),
            row["due_at"] and moment(row["due_at"]),
            has_failed=is_declined or bool(failed_at and (not paid or failed_at > paid[-1].at)),
        )

    def paid_until(self, payment: Payment) -> datetime:
        return Period.parse(self.plans[payment.plan_id].period).after(payment.at)

    def asset_of(self, payment: Payment) -> str:
        return self.plans[payment.plan_id].asset

    def last_of_asset(self, subscription: Subscription, asset: str) -> Payment | None:
        """The last payment of a subscription that was for an asset, as its plan may have changed."""
        return next((paid for paid in reversed(subscription.payments) if self.asset_of(paid) == asset), None)

    def end(self, subscription: Subscription, asset: str) -> datetime | None:
        """When an asset of a subscription ends by its state now. `None`: the user does not have it any more."""
        last = self.last_of_asset(subscription, asset)
        if last is None or last.is_lost:
            return None
        end = self.paid_until(last)
        if last is not subscription.last:
            return end
        if subscription.status == "SUSPENDED":
            return end + GRACE
        if subscription.status == "ACTIVE" and not subscription.has_failed and subscription.next_at is not None:
            return max(end, min(subscription.next_at, end + BILLED_WITHIN) + TOLERANCE)
        return end

    def latest_end(self, subscription: str, asset: str) -> datetime | None:
        """The latest end that any state of a subscription could give an asset."""
        paid = [payment for payment in self.subscriptions[subscription].payments if self.asset_of(payment) == asset]
        return max(
            (self.paid_until(payment) + max(GRACE, BILLED_WITHIN + TOLERANCE) for payment in paid), default=None
        )

    def due(self) -> list[datetime]:
        """When something becomes due at the platform, or what was paid ends."""
        active = [subscription for subscription in self.subscriptions.values() if subscription.status == "ACTIVE"]
        ends = [self.paid_until(subscription.last) for subscription in active if subscription.last is not None]
        return sorted([*ends, *(subscription.due_at for subscription in active if subscription.due_at)])


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
