"""The pages of the sandbox's Stripe, on which payments are made with test cards, also with faults."""

from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from aiohttp import web

from streams.wire.money import Money
from vendors.sandbox.calls import Refusal
from vendors.sandbox.deliveries import FaultSource
from vendors.sandbox.payments.pages import Labels, back_link, fault_buttons, kept_back, page, way_back
from vendors.sandbox.payments.stripe import intents
from vendors.sandbox.payments.stripe.store import Object, Store

_SHOWN = 20
_OPEN = frozenset({"requires_payment_method", "requires_confirmation", "requires_action"})
_DONE = "succeeded"
_CARD = "pm_card_visa"
_CARDS = {
    "decline": "pm_card_visa_chargeDeclined",
    "funds": "pm_card_visa_chargeDeclinedInsufficientFunds",
    "authenticate": "pm_card_authenticationRequired",
    "dispute": "pm_card_createDispute",
}
"""The cards that have a fault."""
_FAULTS: Labels = (
    ("decline", "Decline payment"),
    ("funds", "Insufficient funds"),
    ("authenticate", "Ask for authentication"),
    ("dispute", "Dispute payment"),
)


class Pages:
    def __init__(self, store: Store) -> None:
        self._store = store

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/stripe/pay", self._list),
            web.get("/stripe/pay/{id}", self._show),
            web.post("/stripe/pay/{id}", self._decide),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        found = [intent for intent in self._store.find("payment_intent") if intent["status"] in _OPEN][:_SHOWN]
        rows = "".join(_row(intent, kept_back(request)) for intent in found)
        content = f'<ul class="rows">{rows}</ul>' if rows else "<p>No payment waits for a card.</p>"
        back = back_link(request)
        return _page("Open payments", f"{content}<nav>{back}</nav>" if back else content)

    async def _show(self, request: web.Request) -> web.Response:
        intent = self._find(request)
        status = intent["status"]
        title = "Pay with a test card"
        if status == "requires_action":
            title, content = "Authenticate the payment", _AUTHENTICATION
        elif status in _OPEN:
            content = f"{_error(intent)}{_PAY}{fault_buttons('pay', _FAULTS)}"
        else:
            title, content = "Paid" if status == _DONE else "Payment ended", ""
        amount = f'<p class="amount">{_amount(intent)}</p>'
        facts = f'<p class="facts">{_state(intent)}<code>{escape(intent["id"])}</code></p>'
        links = f'<a href="/stripe/pay{escape(kept_back(request))}">Open payments</a>{back_link(request)}'
        return _page(title, f"{amount}{facts}{content}<nav>{links}</nav>")

    async def _decide(self, request: web.Request) -> web.Response:
        """Pay as the app does with the platform's own library, or authenticate a payment as the owner of the card.

        The field `fault` chooses what goes wrong.
        """
        intent, form = self._find(request), await request.post()
        action = form.get("action")
        with suppress(Refusal):  # The page shows the result.
            if action == "pay":
                self._pay(intent, str(form.get("fault", "")))
            else:
                intents.authenticate(self._store, intent, success=action == "approve")
        back = None
        if intent["status"] == _DONE:
            back = way_back(request, {"payment_intent": intent["id"], "redirect_status": _DONE})
        return back or web.Response(status=303, headers={"Location": request.path_qs})

    def _pay(self, intent: Object, fault: str) -> None:
        store, kept = self._store, self._store.faults
        store.faults = FaultSource.of(fault) or kept
        try:
            intents.confirm_payment(store, intent["id"], {"payment_method": _CARDS.get(fault, _CARD)})
        finally:
            store.faults = kept

    def _find(self, request: web.Request) -> Object:
        try:
            return self._store.get("payment_intent", request.match_info["id"])
        except Refusal:
            raise web.HTTPNotFound from None


_STATES = {
    "requires_payment_method": ("waits for a card", ""),
    "requires_confirmation": ("waits for a card", ""),
    "requires_action": ("waits for authentication", ""),
    _DONE: ("succeeded", " good"),
}
"""The text and the look of the label, by status."""
_PAY = '<form method="post"><button name="action" value="pay">Pay</button></form>'
_AUTHENTICATION = (
    "<p>The bank asks the owner of the card to approve this payment.</p>"
    '<form method="post"><button name="action" value="approve">Approve</button>'
    '<button class="quiet" name="action" value="refuse">Refuse</button></form>'
)


def _row(intent: Object, query: str) -> str:
    created = datetime.fromtimestamp(intent["created"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f'<li><a href="/stripe/pay/{quote(intent["id"])}{escape(query)}"><b>{_amount(intent)}</b>{_state(intent)}'
        f"<small>{created}<br><code>{escape(intent['id'])}</code></small></a></li>"
    )


def _state(intent: Object) -> str:
    """Return a label with the state of a payment. Its title is the status of the platform."""
    status, error = intent["status"], intent["last_payment_error"]
    label, look = _STATES.get(status, (status, ""))
    if error is not None and status == "requires_payment_method":
        label, look = "declined", " bad"
    return f'<span class="state{look}" title="{status}">{label}</span>'


def _error(intent: Object) -> str:
    """Return why the last attempt has failed: the code of the platform, and its sentence."""
    error = intent["last_payment_error"]
    if error is None:
        return ""
    code = error.get("decline_code") or error["code"]
    return f'<p class="error" role="alert">{escape(error["message"])} <code>{escape(code)}</code></p>'


def _amount(intent: Object) -> str:
    return escape(str(Money(intent["amount"], intent["currency"].upper())))


def _page(title: str, content: str) -> web.Response:
    return page(title, f"<h1>{escape(title)}</h1>{content}", platform="Card")
