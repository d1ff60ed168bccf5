"""The pages of the sandbox's PayPal on which a payer approves or cancels, with the faults that can follow."""

from dataclasses import dataclass
from html import escape
from typing import Any

from aiohttp import web

from vendors.sandbox.deliveries import FaultSource
from vendors.sandbox.payments.pages import Labels, fault_buttons, page, way_back
from vendors.sandbox.payments.paypal import orders, subscriptions
from vendors.sandbox.payments.paypal.amounts import read_amount
from vendors.sandbox.payments.paypal.records import CaptureAs, Order, Subscription
from vendors.sandbox.payments.paypal.state import Merchant, Merchants
from vendors.sandbox.payments.paypal.webhooks import send
from vendors.sandbox.sandbox import Sandbox

_PAYER = "2J6QB8YJQSJRJ"
_CAPTURES: dict[str, CaptureAs] = {"decline": "instrument_declined", "pending": "pending"}
_DECLINE = ("decline", "Decline payment")
_FAULTS_OF_ORDERS: Labels = (_DECLINE, ("timeout", "Time out after charge"), ("pending", "Hold payment"))
_FAULTS_OF_SUBSCRIPTIONS: Labels = (_DECLINE, ("later", "Activate later"))


@dataclass(frozen=True, slots=True)
class _Approval:
    """What a payer is asked to approve."""

    merchant: Merchant
    object: Order | Subscription
    token: str

    @property
    def waits(self) -> bool:
        if isinstance(self.object, Order):
            return self.object.status in {"CREATED", "PAYER_ACTION_REQUIRED"}
        return self.object.status == "APPROVAL_PENDING" or self.object.revised is not None

    @property
    def query(self) -> dict[str, str]:
        """The query with which the payer's browser returns."""
        if isinstance(self.object, Order):
            return {"token": self.token}
        return {"subscription_id": self.object.id, "ba_token": self.token, "token": self.token}


class Pages:
    def __init__(self, sandbox: Sandbox, merchants: Merchants) -> None:
        self._sandbox = sandbox
        self._merchants = merchants

    def routes(self) -> list[web.RouteDef]:
        paths = ("/checkoutnow", "/webapps/billing/subscriptions", "/webapps/billing/subscriptions/update")
        return [
            *(web.get(f"/paypal{path}", self._show) for path in paths),
            *(web.post(f"/paypal{path}", self._decide) for path in paths),
            web.get("/paypal/returned", _returned),
        ]

    async def _show(self, request: web.Request) -> web.Response:
        approval = self._find(request)
        if not approval.waits:
            return _message("Nothing to approve", "This payment is approved or has ended already.")
        return _page("Approve a payment", _form(approval))

    async def _decide(self, request: web.Request) -> web.Response:
        """Approve or cancel, and send the payer back. The field `fault` chooses what goes wrong."""
        approval = self._find(request)
        form = await request.post()
        back = "cancel_url"
        if form.get("action") == "approve":
            self._approve(approval, str(form.get("fault", "")))
            back = "return_url"
        context = approval.object.context
        payer = {"PayerID": _PAYER} if isinstance(approval.object, Order) and back == "return_url" else {}
        query = {**approval.query, **payer}
        done = way_back(request, query, default=str(context.get(back, "")))
        return done or _message("Done", "The app names no page to return to.")

    def _approve(self, approval: _Approval, fault: str) -> None:
        merchant, found = approval.merchant, approval.object
        if not approval.waits:
            return
        if isinstance(found, Order):
            found.capture_as = _CAPTURES.get(fault, "completed")
            found.times_out = fault == "timeout"
            orders.approve(merchant, found)
        else:
            found.declines += fault == "decline"
            subscriptions.approve(merchant, found, later=fault == "later")
        send(self._sandbox, merchant, FaultSource.of(fault))

    def _find(self, request: web.Request) -> _Approval:
        token = request.query.get("ba_token") or request.query.get("token", "")
        for merchant in self._merchants.all():
            if token in merchant.orders:
                return _Approval(merchant, merchant.orders[token], token)
            for subscription in merchant.subscriptions.values():
                if subscription.token == token:
                    return _Approval(merchant, subscription, token)
        raise web.HTTPNotFound


def _form(approval: _Approval) -> str:
    found = approval.object
    if isinstance(found, Order):
        title, faults = str(found.unit.get("description", "")) or "One payment", _FAULTS_OF_ORDERS
        amount, every = str(found.amount), "once"
    else:
        plan = found.revised or found.plan
        title, faults = str(plan["name"]), _FAULTS_OF_SUBSCRIPTIONS
        amount, every = _regular(plan)
    brand = str(found.context.get("brand_name", "")) or "the merchant"
    return (
        f'<h1>{escape(title)}</h1><p class="amount">{escape(amount)}</p>'
        f"<p>Pay {escape(amount)} to {escape(brand)}, {escape(every)}</p>"
        '<form method="post"><button name="action" value="approve">Approve</button>'
        '<button class="quiet" name="action" value="cancel">Cancel</button></form>'
        f"{fault_buttons('approve', faults)}"
    )


def _regular(plan: dict[str, Any]) -> tuple[str, str]:
    cycles = plan["billing_cycles"]
    regular = next(cycle for cycle in cycles if cycle["tenure_type"] == "REGULAR")
    amount = read_amount(regular["pricing_scheme"]["fixed_price"], "")
    count = regular["frequency"].get("interval_count", 1)
    unit = str(regular["frequency"]["interval_unit"]).lower()
    trial = ", after a trial" if len(cycles) > 1 else ""
    return str(amount), f"every {unit}{trial}" if count == 1 else f"every {count} {unit}s{trial}"


async def _returned(request: web.Request) -> web.Response:
    text = "The payment is cancelled." if "cancelled" in request.query else "The payment is approved."
    return _message(text, "You can close this page and return to the app.")


def _message(title: str, text: str) -> web.Response:
    return _page(title, f"<h1>{escape(title)}</h1><p>{escape(text)}</p>")


def _page(title: str, content: str) -> web.Response:
    return page(title, content, platform="Wallet")
