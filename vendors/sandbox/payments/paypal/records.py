"""The records of a merchant of the sandbox's PayPal: payments, disputes, orders, subscriptions, payouts."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from streams.wire.money import Money
from vendors.sandbox.payments.paypal.wire import new_id

CaptureAs = Literal["completed", "pending", "declined", "instrument_declined"]
"""The result of a capture. With `instrument_declined` there is no capture, and the payer has to approve again."""

Outcome = Literal[
    "RESOLVED_BUYER_FAVOUR",
    "RESOLVED_SELLER_FAVOUR",
    "RESOLVED_WITH_PAYOUT",
    "CANCELED_BY_BUYER",
    "ACCEPTED",
    "DENIED",
    "NONE",
]
"""The outcome of a dispute."""

RefundStatus = Literal["COMPLETED", "PENDING", "FAILED", "CANCELLED"]


@dataclass(slots=True)
class Payment:
    """A capture if it has an order, otherwise a sale."""

    amount: Money
    at: datetime
    custom_id: str
    order_id: str = ""
    subscription_id: str = ""
    plan_id: str = ""
    """The plan that a sale pays, which PayPal does not tell."""
    status: str = "COMPLETED"
    reason: str = ""
    id: str = field(default_factory=new_id)
    refunded: int = 0
    """In minor units."""
    changed_at: datetime | None = None
    """When it was last refunded, or a refund was undone."""

    @property
    def left(self) -> Money:
        return Money(self.amount.amount - self.refunded, self.amount.currency)

    def refund(self, amount: Money, *, at: datetime) -> None:
        self.refunded += amount.amount
        self.status = "PARTIALLY_REFUNDED" if self.left.amount else "REFUNDED"
        self.changed_at = at

    def undo_refund(self, amount: Money, *, at: datetime) -> None:
        self.refunded -= amount.amount
        self.status = "PARTIALLY_REFUNDED" if self.refunded else "COMPLETED"
        self.changed_at = at


@dataclass(slots=True)
class Refund:
    """A refund. While it is `PENDING`, the payment is not changed."""

    payment: Payment
    amount: Money
    at: datetime
    status: RefundStatus = "COMPLETED"
    is_reversal: bool = False
    """Whether a bank or PayPal has taken the money, and not the merchant has given it back."""
    by_call: bool = False
    """Whether a call has asked for it, and not the merchant on PayPal's pages."""
    id: str = field(default_factory=new_id)


@dataclass(slots=True)
class Dispute:
    payment: Payment
    amount: Money
    at: datetime
    reversal: Refund | None = None
    """What has taken the money."""
    outcome: Outcome | None = None
    """`None`: it is open."""
    refunded: Money | None = None
    """What the payer gets back, if it is lost."""
    changed_at: datetime | None = None
    id: str = field(default_factory=lambda: f"PP-D-{new_id(5)}")


@dataclass(slots=True)
class Order:
    unit: dict[str, Any]
    """The purchase unit of the request."""
    amount: Money
    created_at: datetime
    context: dict[str, Any]
    source: bool
    """Whether the request has a `payment_source`."""
    status: str
    id: str = field(default_factory=new_id)
    capture: Payment | None = None
    capture_as: CaptureAs = "completed"
    times_out: bool = False
    """Whether the next capture takes the payment but is not answered."""

    @property
    def custom_id(self) -> str:
        return str(self.unit.get("custom_id", ""))


@dataclass(slots=True)
class Subscription:
    plan: dict[str, Any]
    created_at: datetime
    custom_id: str
    context: dict[str, Any]
    quantity: int = 1
    start_at: datetime | None = None
    """If it begins later than its approval."""
    id: str = field(default_factory=lambda: f"I-{new_id(12)}")
    token: str = field(default_factory=lambda: f"BA-{new_id(17)}")
    """Names it on the page where it is approved."""
    status: str = "APPROVAL_PENDING"
    status_at: datetime | None = None
    updated_at: datetime | None = None
    """When its state, its plan or its payments last changed."""
    revised: dict[str, Any] | None = None
    """The plan of a revision that waits for its approval."""
    cycles: int = 0
    """The number of periods that have begun."""
    next_at: datetime | None = None
    retry_at: datetime | None = None
    late: timedelta = timedelta()
    """How much later than `next_at` and `retry_at` the payments are taken."""
    retries: int = 0
    """How often the payment of this cycle was repeated."""
    outstanding: int = 0
    """The payments of cycles that have failed for good, in minor units. The next payment includes them."""
    failed: int = 0
    """How many cycles in a row have failed, this one included."""
    last_failure: dict[str, Any] | None = None
    """The last payment that was declined."""
    declines: int = 0
    """How many of the next payments the payer's bank declines."""
    pends: int = 0
    """How many of the next payments are pending at first, as those from a bank account are."""
    last: Payment | None = None

    @property
    def due_at(self) -> datetime | None:
        """When the next payment is taken. An overdue one is taken as soon as the subscription is active again."""
        at = self.retry_at or self.next_at
        return at and max(at + self.late, self.status_at or at)


@dataclass(slots=True)
class Item:
    request: dict[str, Any]
    amount: Money
    at: datetime
    status: str
    error: str
    id: str = field(default_factory=lambda: new_id(13))

    @property
    def receiver(self) -> str:
        return str(self.request["receiver"])


@dataclass(slots=True)
class Payout:
    header: dict[str, Any]
    items: list[Item]
    created_at: datetime
    status: str
    id: str = field(default_factory=lambda: new_id(13))
