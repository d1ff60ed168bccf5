"""What developers and tests do to a merchant of the sandbox's PayPal: `POST /paypal/_control/<action>`.

Each body names the merchant by `client_id`. The answers show the merchant's clock. `GET /paypal/_control/books`
with `client_id` in the query returns what the merchant was paid, and has paid.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web
from pydantic import Field

from streams.wire.codec import dumps, loads_request, rfc3339
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model, Moment
from streams.wire.money import Money
from vendors.sandbox.deliveries import DeliveryFaults, FaultSource
from vendors.sandbox.payments.paypal import disputes, orders, payouts, sales, subscriptions
from vendors.sandbox.payments.paypal.amounts import read_amount
from vendors.sandbox.payments.paypal.books import books
from vendors.sandbox.payments.paypal.records import CaptureAs, Outcome, Payment, RefundStatus
from vendors.sandbox.payments.paypal.state import Merchant, Merchants
from vendors.sandbox.payments.paypal.webhooks import send
from vendors.sandbox.sandbox import Sandbox


class _Action(Model, extra="forbid"):
    """An action on a merchant. Raises `KeyError` if the merchant has no object with the id."""

    client_id: str = Field(min_length=1)

    def act(self, merchant: Merchant) -> None:
        raise NotImplementedError


class _Clock(_Action):
    at: Moment | None
    """The merchant's new time, from which it advances with real time. `null`: real time."""

    def act(self, merchant: Merchant) -> None:
        merchant.offset = timedelta() if self.at is None else self.at - datetime.now(UTC)


class _Webhook(_Action):
    id: str
    """The id of the webhook, as configs name it."""
    url: str

    def act(self, merchant: Merchant) -> None:
        merchant.hooks[self.id] = self.url


class _Deliveries(_Action, DeliveryFaults):
    def act(self, merchant: Merchant) -> None:
        merchant.faults = FaultSource(self)


class _RevokeTokens(_Action):
    """PayPal forgets the merchant's access tokens, as after a change of the secret."""

    def act(self, merchant: Merchant) -> None:
        merchant.tokens.clear()


class _Settle(_Action):
    """Give a capture another state, for example after it was pending."""

    capture_id: str
    state: CaptureAs

    def act(self, merchant: Merchant) -> None:
        orders.set_capture_state(merchant, merchant.payments[self.capture_id], self.state)


class _OfPayment(_Action):
    payment_id: str
    """A capture or a sale."""
    value: str | None = None
    """How much of it, such as `1.50`. All that is left if absent."""

    def amount_of(self, payment: Payment) -> Money:
        amount = payment.left
        if self.value is None:
            return amount
        return read_amount({"currency_code": amount.currency, "value": self.value}, "/value")


class _Reverse(_OfPayment):
    """Take a payment back, as after a chargeback."""

    def act(self, merchant: Merchant) -> None:
        payment = merchant.payments[self.payment_id]
        sales.reverse(merchant, payment, self.amount_of(payment))


class _Refund(_OfPayment):
    """Refund a payment, as the merchant can on PayPal's pages."""

    def act(self, merchant: Merchant) -> None:
        payment = merchant.payments[self.payment_id]
        sales.make_refund(merchant, payment, self.amount_of(payment))


class _Dispute(_OfPayment):
    """Open a dispute of a payment."""

    reverses: bool = False
    """Whether the money is taken at once, as in a chargeback."""

    def act(self, merchant: Merchant) -> None:
        payment = merchant.payments[self.payment_id]
        disputes.open_dispute(merchant, payment, self.amount_of(payment), reverses=self.reverses)


class _Resolve(_Action):
    """Decide a dispute, or open it again."""

    dispute_id: str
    outcome: Outcome | None
    """`null`: it is open again."""
    value: str | None = None
    """How much the payer gets back of a dispute that is lost, such as `0.50`. All that is disputed if absent."""

    def act(self, merchant: Merchant) -> None:
        dispute = merchant.disputes[self.dispute_id]
        if self.outcome is None:
            disputes.reopen(merchant, dispute)
        else:
            amount = None
            if self.value is not None:
                written = {"currency_code": dispute.amount.currency, "value": self.value}
                amount = read_amount(written, "/value")
            disputes.resolve(merchant, dispute, self.outcome, amount=amount)


class _RefundPending(_Action):
    """Let PayPal only accept further refunds of calls, and make them later or not at all."""

    pending: bool = True
    """`false`: further refunds are made at once again."""

    def act(self, merchant: Merchant) -> None:
        merchant.refunds_as = "PENDING" if self.pending else "COMPLETED"


class _TurnRefund(_Action):
    """Make a pending refund, or let it fail."""

    refund_id: str
    status: RefundStatus

    def act(self, merchant: Merchant) -> None:
        sales.turn_refund(merchant, merchant.refunds[self.refund_id], self.status)


class _RefuseRefunds(_Action):
    """Choose how refunds of sales are refused."""

    name: str = ""
    """The name of the error of a refund that exceeds what is left, such as `TRANSACTION_REFUSED`."""
    partial: bool = False
    """Whether refunds of a part are refused too."""

    def act(self, merchant: Merchant) -> None:
        merchant.refund_refusal, merchant.refunds_whole_sales = self.name, self.partial


class _Reprice(_Action):
    """Change the amount of an order, as the merchant can."""

    order_id: str
    value: str
    currency: str | None = None

    def act(self, merchant: Merchant) -> None:
        order = merchant.orders[self.order_id]
        currency = self.currency or order.amount.currency
        order.amount = read_amount({"currency_code": currency, "value": self.value}, "/value")


class _Begin(_Action):
    """Activate a subscription that was approved to be activated later."""

    subscription_id: str

    def act(self, merchant: Merchant) -> None:
        subscriptions.begin(merchant, merchant.subscriptions[self.subscription_id])


class _Decline(_Action):
    """Let the payer's bank decline the next payments of a subscription."""

    subscription_id: str
    times: int = 1

    def act(self, merchant: Merchant) -> None:
        merchant.subscriptions[self.subscription_id].declines = self.times


class _BillLate(_Action):
    """Take the further payments of a subscription later on the day than at 10:00 UTC."""

    subscription_id: str
    hours: int = Field(ge=0, le=14)

    def act(self, merchant: Merchant) -> None:
        merchant.subscriptions[self.subscription_id].late = timedelta(hours=self.hours)


class _Pend(_Action):
    """Let the next payments of a subscription be pending at first, as those from a bank account are."""

    subscription_id: str
    times: int = 1

    def act(self, merchant: Merchant) -> None:
        merchant.subscriptions[self.subscription_id].pends = self.times


class _SettleSale(_Action):
    """Complete a pending sale, or let it fail."""

    sale_id: str
    completed: bool = True

    def act(self, merchant: Merchant) -> None:
        subscriptions.settle(merchant, merchant.payments[self.sale_id], completed=self.completed)


class _Renew(_Action):
    """Move the clock to the next payments of a subscription."""

    subscription_id: str
    times: int = 1

    def act(self, merchant: Merchant) -> None:
        subscription = merchant.subscriptions[self.subscription_id]
        for _ in range(self.times):
            if subscription.due_at is None:
                raise InvalidParameter("the subscription has no next payment")
            merchant.offset += max(subscription.due_at - merchant.now, timedelta())
            subscriptions.advance(merchant, subscription)


class _ListGarbage(_Action):
    """Let each page of the merchant's events begin with something else."""

    events: list[Any] = Field(max_length=10)

    def act(self, merchant: Merchant) -> None:
        merchant.garbage = self.events


class _TurnPayout(_Action):
    """Give the payments of a payout another state."""

    payout_id: str
    status: str

    def act(self, merchant: Merchant) -> None:
        payout = merchant.payouts[self.payout_id]
        for item in payout.items:
            payouts.set_item_status(merchant, payout, item, self.status)


_ACTIONS: Mapping[str, type[_Action]] = {
    "clock": _Clock,
    "webhook": _Webhook,
    "deliveries": _Deliveries,
    "revoke_tokens": _RevokeTokens,
    "settle": _Settle,
    "reverse": _Reverse,
    "refund": _Refund,
    "dispute": _Dispute,
    "resolve_dispute": _Resolve,
    "refund_pending": _RefundPending,
    "turn_refund": _TurnRefund,
    "refuse_refunds": _RefuseRefunds,
    "reprice": _Reprice,
    "begin": _Begin,
    "decline": _Decline,
    "bill_late": _BillLate,
    "pend": _Pend,
    "settle_sale": _SettleSale,
    "renew": _Renew,
    "list_garbage": _ListGarbage,
    "payout": _TurnPayout,
}


class Control:
    def __init__(self, sandbox: Sandbox, merchants: Merchants, advance: Callable[[Merchant], None]) -> None:
        self._sandbox = sandbox
        self._merchants = merchants
        self._advance = advance

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/paypal/_control/{action}", self._act),
            web.get("/paypal/_control/books", self._books),
        ]

    async def _books(self, request: web.Request) -> web.Response:
        merchant = self._merchants.of(request.query.get("client_id", ""))
        return web.Response(body=dumps(books(merchant)), content_type="application/json")

    async def _act(self, request: web.Request) -> web.Response:
        model = _ACTIONS.get(request.match_info["action"])
        if model is None:
            raise InvalidParameter(f"the action must be one of {', '.join(_ACTIONS)}")
        action = model.of(loads_request(await request.read()))
        merchant = self._merchants.of(action.client_id, f"{request.scheme}://{request.host}/paypal")
        try:
            action.act(merchant)
        except KeyError:
            raise InvalidParameter("the merchant has no object with this id") from None
        self._advance(merchant)
        send(self._sandbox, merchant)
        answer = {"client_id": merchant.client_id, "now": rfc3339(merchant.now), "webhooks": merchant.hooks}
        return web.Response(body=dumps(answer), content_type="application/json")
