"""Objects of Stripe's API, with the fields that are read here."""

from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, Field

from streams.wire.money import EXPONENTS, Money, exponent_of
from vendors.objects import VendorObject

ZERO_DECIMAL = frozenset({"MGA"})
"""Currencies that have a minor unit in ISO 4217, and none at Stripe."""
TWO_DECIMAL = frozenset({"ISK", "UGX"})
"""Currencies that have no minor unit in ISO 4217, and two decimals at Stripe."""

_ENDED = frozenset({"canceled", "incomplete_expired"})
_RENEWING = frozenset({"trialing", "active"})
"""Statuses in which no payment has failed."""

Item = TypeVar("Item", bound=VendorObject)


def platform_amount(money: Money) -> int:
    """Return the amount in Stripe's unit of the currency. Raises `ValueError` if it cannot be expressed."""
    if money.currency in TWO_DECIMAL:
        return money.amount * 100
    if exponent_of(money.currency) == 3 and money.amount % 10:
        raise ValueError(f"must be a multiple of 10 in {money.currency}")
    if money.currency not in ZERO_DECIMAL:
        return money.amount
    whole, rest = divmod(money.amount, 100)
    if rest:
        raise ValueError(f"must be a whole number of {money.currency}")
    return whole


def money_of(amount: int, currency: str) -> Money:
    """Return an amount in Stripe's unit of the currency as money. Stripe writes currencies in lower case."""
    code = currency.upper()
    if code in TWO_DECIMAL:
        return Money(amount // 100, code)
    return Money(amount * 100 if code in ZERO_DECIMAL else amount, code)


def _id_of(value: Any) -> Any:
    """Return the id of an object, which Stripe sends whole if the call has asked for that."""
    return value.get("id") if isinstance(value, Mapping) else value


Id = Annotated[str | None, BeforeValidator(_id_of)]
"""The id of another object, if there is one."""


class Page(VendorObject, Generic[Item]):
    """A page of a list, the newest object first."""

    data: list[Item]
    has_more: bool = False


class InvoiceSettings(VendorObject):
    default_payment_method: Id = None


class Customer(VendorObject):
    id: str
    default_source: Id = None
    invoice_settings: InvoiceSettings | None = None

    @property
    def default_method(self) -> str | None:
        settings = self.invoice_settings or InvoiceSettings()
        return settings.default_payment_method or self.default_source


class PaymentMethod(VendorObject):
    id: str
    customer: Id = None
    created: int


class PaymentIntent(VendorObject):
    id: str
    amount: int
    currency: str
    status: str
    client_secret: str | None = None
    customer: Id = None
    payment_method: Id = None
    metadata: dict[str, str] = Field(default_factory=dict)


class SetupIntent(VendorObject):
    id: str
    status: str
    client_secret: str | None = None
    customer: Id = None
    payment_method: Id = None


class Span(VendorObject):
    """A period, in Unix seconds."""

    start: int
    end: int


class Recurring(VendorObject):
    interval: str
    """`day`, `week`, `month` or `year`."""
    interval_count: int = 1


class Price(VendorObject):
    id: str
    active: bool = True
    currency: str = ""
    unit_amount: int | None = None
    """`None`: the price depends on the quantity, or is a fraction of the smallest unit."""
    recurring: Recurring | None = None
    """`None`: the price is of a single payment."""

    @property
    def money(self) -> Money | None:
        """The amount, if it is fixed and in a currency of ISO 4217."""
        if self.unit_amount is None or self.currency.upper() not in EXPONENTS:
            return None
        return money_of(self.unit_amount, self.currency)


class SubscriptionItem(VendorObject):
    price: Price | None = None
    current_period_start: int | None = None
    current_period_end: int | None = None


class Subscription(VendorObject):
    id: str
    status: str
    customer: Id = None
    items: Page[SubscriptionItem]
    current_period_end: int | None = None
    """In versions before 2025-03-31, as `current_period_start`. Later versions have them in the items."""
    current_period_start: int | None = None
    cancel_at_period_end: bool = False
    cancel_at: int | None = None
    """When it is to end, or has ended: at the end of the period, or at a date that was set instead."""
    canceled_at: int | None = None
    """When it was cancelled."""
    latest_invoice: Id = None
    metadata: dict[str, str] = Field(default_factory=dict)

    @property
    def period_end(self) -> int | None:
        """The end of the current period, in Unix seconds."""
        ends = [item.current_period_end for item in self.items.data if item.current_period_end is not None]
        return max(ends, default=self.current_period_end)

    @property
    def period_start(self) -> int | None:
        starts = [item.current_period_start for item in self.items.data if item.current_period_start is not None]
        return max(starts, default=self.current_period_start)

    @property
    def has_ended(self) -> bool:
        return self.status in _ENDED

    @property
    def is_cancelled(self) -> bool:
        """Whether it has ended or is to end, with its period or at a date."""
        return self.has_ended or self.cancel_at_period_end or self.cancel_at is not None

    @property
    def renews(self) -> bool:
        """Whether it is billed after its period. One that was cancelled to a later date is billed until then."""
        if self.has_ended or self.cancel_at_period_end:
            return False
        return self.cancel_at is None or self.period_end is None or self.cancel_at > self.period_end

    def billed_after(self, paid_end: int) -> int | None:
        """Return when Stripe bills the period after a paid one, in Unix seconds. `None`: never, or it has failed.

        At the end of a period, Stripe begins the next one at once, whose invoice is a draft for about an hour.
        """
        if self.status not in _RENEWING:
            return None
        if self.period_start is not None and self.period_start >= paid_end:
            return paid_end
        return self.period_end if self.renews else None


class _SubscriptionDetails(VendorObject):
    subscription: Id = None


class _Parent(VendorObject):
    subscription_details: _SubscriptionDetails | None = None


class InvoiceLine(VendorObject):
    amount: int
    period: Span


class Invoice(VendorObject):
    id: str
    status: str | None = None
    amount_paid: int
    currency: str
    billing_reason: str | None = None
    created: int
    parent: _Parent | None = None
    subscription: Id = None
    """In versions before 2025-03-31."""
    lines: Page[InvoiceLine]

    @property
    def subscription_id(self) -> str | None:
        details = None if self.parent is None else self.parent.subscription_details
        return self.subscription if details is None else details.subscription

    @property
    def period(self) -> Span | None:
        """The period that was paid: the last one of its lines, because a proration lists the earlier one too."""
        return max((line.period for line in self.lines.data), key=lambda span: span.end, default=None)


class _Payment(VendorObject):
    payment_intent: Id = None


class InvoicePayment(VendorObject):
    """The payment that has paid an invoice, or is to pay it."""

    invoice: Id = None
    payment: _Payment = _Payment()


class Refund(VendorObject):
    id: str
    amount: int
    currency: str
    metadata: dict[str, str] | None = None
    status: str | None = None
    created: int
    payment_intent: Id = None


class _Evidence(VendorObject):
    due_by: int | None = None
    """Until when evidence is taken, in Unix seconds. 0 if the bank takes none."""


class Dispute(VendorObject):
    id: str
    amount: int
    """What is disputed, which may be a part of the payment."""
    currency: str
    status: str
    created: int
    payment_intent: Id = None
    evidence_details: _Evidence = _Evidence()


class _EventData(VendorObject):
    object: dict[str, Any]


class Event(VendorObject):
    id: str = Field(min_length=1, max_length=255)
    type: str
    created: int
    data: _EventData
