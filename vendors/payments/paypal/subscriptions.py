"""PayPal's plans and subscriptions, and the payments of subscriptions."""

import re
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from streams.wire.model import Matches, Moment
from streams.wire.money import Money
from vendors.payments.paypal.fields import Amount, Links, PayPalObject, linked, rounded_part

_TRIAL = "TRIAL"
_PENDING = "APPROVAL_PENDING"
_QUANTITY = re.compile(r"[1-9][0-9]{0,6}", re.ASCII)


_Percentage = Annotated[str, Matches(r"^(100|[0-9]{1,2})(\.[0-9]{1,6})?$", "must be a percentage")]


class _Price(PayPalObject):
    fixed_price: Amount | None = None


class _Frequency(PayPalObject):
    interval_unit: str
    """`DAY`, `WEEK`, `MONTH` or `YEAR`."""
    interval_count: int = 1


class BillingCycle(PayPalObject):
    """The payments of a plan at one price."""

    sequence: int
    tenure_type: str = "REGULAR"
    """`TRIAL` or `REGULAR`."""
    total_cycles: int = 0
    """How many payments. 0: until the subscription is cancelled."""
    frequency: _Frequency | None = None
    pricing_scheme: _Price = _Price()
    """Without a price, a trial is free."""


class _Taxes(PayPalObject):
    percentage: _Percentage
    inclusive: bool = True


class _Preferences(PayPalObject):
    setup_fee: Amount | None = None
    """What the first payment takes in addition."""


class Plan(PayPalObject):
    id: str = ""
    """Empty in the plan of a subscription that overrides it."""
    product_id: str = ""
    status: str = ""
    """`CREATED`, `INACTIVE` or `ACTIVE`."""
    billing_cycles: list[BillingCycle] = Field(default_factory=list)
    taxes: _Taxes | None = None

    payment_preferences: _Preferences = _Preferences()

    @property
    def regular(self) -> BillingCycle | None:
        """The payments after the trials."""
        return next((cycle for cycle in self.billing_cycles if cycle.tenure_type != _TRIAL), None)

    @property
    def trials(self) -> list[BillingCycle]:
        """The payments before the regular ones, in their order."""
        found = [cycle for cycle in self.billing_cycles if cycle.tenure_type == _TRIAL]
        return sorted(found, key=lambda cycle: cycle.sequence)

    @property
    def has_trial(self) -> bool:
        return any(cycle.tenure_type == _TRIAL for cycle in self.billing_cycles)

    @property
    def has_free_trial(self) -> bool:
        prices = [cycle.pricing_scheme.fixed_price for cycle in self.billing_cycles if cycle.tenure_type == _TRIAL]
        return bool(prices) and (prices[0] is None or prices[0].amount == 0)

    def payment(self, quantity: int = 1) -> Money | None:
        """Return the regular payment with its taxes. `None`: the plan has no fixed price."""
        prices = (cycle.pricing_scheme.fixed_price for cycle in self.billing_cycles if cycle.tenure_type != _TRIAL)
        price = next((price for price in prices if price is not None), None)
        if price is None:
            return None
        net = Money(price.amount * quantity, price.currency)
        if self.taxes is None or self.taxes.inclusive:
            return net
        share, whole = (Decimal(self.taxes.percentage) / 100).as_integer_ratio()
        return net + rounded_part(net, share, whole)


class LastPayment(PayPalObject):
    amount: Amount
    time: Moment


class _FailedPayment(PayPalObject):
    time: Moment
    next_payment_retry_time: Moment | None = None
    """When it is repeated. `None`: it is added to the next payment."""


class _BillingInfo(PayPalObject):
    last_payment: LastPayment | None = None
    last_failed_payment: _FailedPayment | None = None
    """Only `PayPal.subscription` asks for it."""
    next_billing_time: Moment | None = None
    final_payment_time: Moment | None = None
    failed_payments_count: int = 0
    """How many payments have failed since the last one that was made."""


class Subscription(PayPalObject):
    id: str
    status: str
    """`APPROVAL_PENDING`, `APPROVED`, `ACTIVE`, `SUSPENDED`, `CANCELLED` or `EXPIRED`."""
    status_update_time: Moment | None = None
    plan_id: str = ""
    plan: Plan | None = None
    """The plan with what the subscription overrides. Only `PayPal.subscription` asks for it."""
    quantity: str = "1"
    custom_id: str = ""
    start_time: Moment | None = None
    create_time: Moment | None = None
    update_time: Moment | None = None
    """When its state, its plan or its payments last changed."""
    billing_info: _BillingInfo = _BillingInfo()
    links: Links = Field(default_factory=list)

    @property
    def approve_url(self) -> str:
        """Where the subscriber approves it. Empty once it is approved."""
        return linked(self.links, "approve") if self.status == _PENDING else ""

    @property
    def last_payment(self) -> LastPayment | None:
        return self.billing_info.last_payment

    @property
    def payment_failed(self) -> bool:
        """Whether a payment has failed since the last one that was made."""
        failed, last = self.billing_info.last_failed_payment, self.billing_info.last_payment
        if self.billing_info.failed_payments_count > 0:
            return True
        return failed is not None and (last is None or failed.time > last.time)

    @property
    def retry_at(self) -> datetime | None:
        """When the payment that has failed last is repeated."""
        failed = self.billing_info.last_failed_payment
        return None if failed is None else failed.next_payment_retry_time

    @property
    def next_payment_at(self) -> datetime | None:
        return self.billing_info.next_billing_time

    @property
    def next_payment(self) -> Money | None:
        """The amount of the next regular payment, if the plan is known and its price is fixed."""
        if self.plan is None or _QUANTITY.fullmatch(self.quantity) is None:
            return None
        return self.plan.payment(int(self.quantity))


class _Breakdown(PayPalObject):
    gross_amount: Amount


class Transaction(PayPalObject):
    """A payment of a subscription. Its id is that of a sale."""

    id: str
    status: str = ""
    """`COMPLETED`, `DECLINED`, `PARTIALLY_REFUNDED`, `PENDING` or `REFUNDED`."""
    amount_with_breakdown: _Breakdown
    time: Moment

    @property
    def amount(self) -> Money:
        return self.amount_with_breakdown.gross_amount

    @property
    def is_declined(self) -> bool:
        return self.status == "DECLINED"


class Transactions(PayPalObject):
    transactions: list[Transaction] = Field(default_factory=list)


class Sale(PayPalObject):
    """A payment of a subscription, read by its id."""

    id: str
    state: str
    """`completed`, `partially_refunded`, `pending`, `refunded` or `denied`."""
    amount: Amount
    billing_agreement_id: str = ""
    """The id of the subscription."""
    create_time: Moment | None = None
    update_time: Moment | None = None
