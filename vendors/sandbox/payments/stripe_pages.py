"""The pages of the sandbox's Stripe, on which payments are made with test cards, also with faults."""

from contextlib import suppress
from html import escape

from aiohttp import web

from streams.wire.money import Money
from vendors.sandbox.calls import Refusal
from vendors.sandbox.deliveries import FaultSource
from vendors.sandbox.payments import stripe_intents
from vendors.sandbox.payments.pages import Labels, fault_buttons, page
from vendors.sandbox.payments.stripe_store import Object, Store

_SHOWN = 20
_OPEN = frozenset({"requires_payment_method", "requires_confirmation"})
_CARD = "pm_card_visa"
_CARDS = {
    "decline": "pm_card_visa_chargeDeclined",
    "authenticate": "pm_card_authenticationRequired",
    "dispute": "pm_card_createDispute",
}
"""The cards that have a fault."""
_FAULTS: Labels = (("authenticate", "Ask for authentication"), ("dispute", "Dispute payment"))


class Pages:
    def __init__(self, store: Store) -> None:
        self._store = store

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/stripe/pay", self._list),
            web.get("/stripe/pay/{id}", self._show),
            web.post("/stripe/pay/{id}", self._pay),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        found = [each for each in self._store.find("payment_intent") if each["status"] in _OPEN][:_SHOWN]
        links = "".join(f'<p><a href="pay/{each["id"]}">{_amount(each)}</a> {each["id"]}</p>' for each in found)
        return _page("Payments that wait for a card", links or "<p>There are none.</p>")

    async def _show(self, request: web.Request) -> web.Response:
        intent = self._find(request)
        amount = f'<p class="amount">{_amount(intent)}</p><p>{intent["status"].replace("_", " ")}</p>'
        if intent["status"] not in _OPEN:
            return _page("A payment", amount)
        pay = '<form method="post"><button class="primary" name="action" value="pay">Pay</button></form>'
        return _page("Pay with a test card", f"{amount}{pay}{fault_buttons('pay', _FAULTS)}")

    async def _pay(self, request: web.Request) -> web.Response:
        """Pay as the app does with the platform's own library. The field `fault` chooses what goes wrong."""
        intent, fault = self._find(request), str((await request.post()).get("fault", ""))
        store, kept = self._store, self._store.faults
        store.faults = FaultSource.of(fault) or kept
        with suppress(Refusal):  # The page shows what has become of the payment.
            stripe_intents.confirm_payment(store, intent["id"], {"payment_method": _CARDS.get(fault, _CARD)})
        store.faults = kept
        return web.Response(status=303, headers={"Location": request.path})

    def _find(self, request: web.Request) -> Object:
        try:
            return self._store.get("payment_intent", request.match_info["id"])
        except Refusal:
            raise web.HTTPNotFound from None


def _amount(intent: Object) -> str:
    return escape(str(Money(intent["amount"], intent["currency"].upper())))


def _page(title: str, content: str) -> web.Response:
    return page(title, f"<h1>{escape(title)}</h1>{content}", platform="Card")
