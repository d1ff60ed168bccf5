"""Users who buy, subscribe, upgrade, share and withdraw. Each caller is one user after another."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from app.http.callers.tokens import make_server_token
from bench.kills.client import Client, GivenUp, Refused
from bench.kills.testbed import APP, MERCHANT

Prove = Callable[[str], Awaitable[None]]
"""Gives a user a proven email address, to which withdrawals are paid."""

CARD = {"number": "4242424242424242", "exp_month": "12", "exp_year": "2040", "cvc": "123"}
_PLATFORM_KEY = {"Authorization": "Bearer sandbox"}
_CODES = 50
_DECISION_S = (0.0, 2.0)
"""How long a bank takes to decide on a dispute."""


@dataclass(frozen=True, slots=True)
class Place:
    """The deployment that callers use."""

    client: Client
    sandbox_url: str
    server_key: str
    prove: Prove
    codes: deque[str] = field(default_factory=lambda: deque(maxlen=_CODES))
    """The newest codes of share groups."""

    @property
    def random(self) -> random.Random:
        return self.client.random

    def maybe(self, share: float) -> bool:
        return self.random.random() < share


@dataclass(frozen=True, slots=True)
class User:
    place: Place
    uid: str
    session: str

    async def run(self) -> None:
        """Perform some actions of users, in random order. A request that is given up ends its action."""
        acts: list[Callable[[], Awaitable[None]]] = [
            self.buy_with_card,
            self.buy_by_wallet,
            self.withdraw,
            self.join,
        ]
        acts += [self.random.choice((self.subscribe_with_card, self.subscribe_by_wallet, self.subscribe_by_wallet))]
        self.random.shuffle(acts)
        for act in acts:
            with suppress(GivenUp):
                try:
                    await act()
                except Refused as refused:
                    self.place.client.observations.misses.append(f"{act.__name__}: {refused.error_type}")

    @property
    def random(self) -> random.Random:
        return self.place.random

    async def _client(self, name: str, method: str, path: str, json: Any = None) -> dict[str, Any]:
        headers = {"X-Service-Session-Token": self.session}
        return await self.place.client.ask(
            name, method, f"/bp/asset/{path}", headers=lambda: headers, json=json, uid=self.uid
        )

    async def _server(self, name: str, method: str, path: str, *, scope: str, json: Any = None) -> dict[str, Any]:
        path = f"/bp/server/user/{self.uid}/{path}"
        headers = partial(self._token, scope)
        return await self.place.client.ask(name, method, path, headers=headers, json=json, uid=self.uid)

    def _token(self, scope: str) -> dict[str, str]:
        """Return the header of one call by the app's server."""
        token = make_server_token(
            kid="development", alg="HS256", key=self.place.server_key, app_id=APP, scope=scope, jti=uuid4().hex
        )
        return {"X-Service-Auth-Token": token}

    async def _at_card_platform(self, path: str, **form: str) -> dict[str, Any]:
        url = f"{self.place.sandbox_url}/stripe/v1/{path}"
        return await self.place.client.act(url, data=form, headers=_PLATFORM_KEY)

    async def _at_wallet(self, action: str = "", **body: Any) -> dict[str, Any]:
        """Do what banks do at the wallet platform. Without an action, return its books."""
        url = f"{self.place.sandbox_url}/paypal/_control"
        if not action:
            return await self.place.client.see(f"{url}/books", client_id=MERCHANT)
        return await self.place.client.act(f"{url}/{action}", json={"client_id": MERCHANT, **body})

    async def _approve(self, created: Mapping[str, Any]) -> None:
        if link := created["approve_link_href"]:
            await self.place.client.act(link, data={"action": "approve", "fault": ""})

    async def buy_with_card(self) -> None:
        """Buy coins with a card, then more with the same card, which is charged at once."""
        product = {"amonut": 199, "currency": "usd", "product_id": "coins_100"}
        intents = "asset/cardpay_payment_intent"
        made = await self._server("card: create", "POST", intents, scope="payments", json=product)
        first = made["cardpay_payment_intent"]
        method = await self._at_card_platform("payment_methods/pm_card_visa/attach", customer=first["customer_id"])
        await self._at_card_platform(f"payment_intents/{first['id']}/confirm", payment_method=method["id"])
        if self.place.maybe(0.3):
            await self._server("card: read", "GET", f"{intents}/{first['id']}", scope="payments")
        for _ in range(self.random.randrange(4)):
            body = {**product, "with_customer_payment_method": True}
            await self._server("card: charge", "POST", intents, scope="payments", json=body)
        if self.place.maybe(0.15):
            await self._at_card_platform("refunds", payment_intent=first["id"])
            self.place.client.observations.refunded.append(first["id"])
        elif self.place.maybe(0.2):
            await self._dispute_card(first["id"])

    async def _dispute_card(self, intent_id: str) -> None:
        """Dispute a payment with a card. Its bank has decided on most disputes before the end of the run."""
        url = f"{self.place.sandbox_url}/stripe/_sandbox/dispute"
        for status in ("needs_response", self.random.choice(("under_review", "won", "lost"))):
            await self.place.client.act(url, json={"payment_intent": intent_id, "status": status})
            self.place.client.observations.disputed[intent_id] = status
            await asyncio.sleep(self.random.uniform(*_DECISION_S))

    async def subscribe_with_card(self) -> None:
        setup = (await self._client("card: set up", "POST", "cardpay_setup_intent", {}))["cardpay_setup_intent"]
        body = {"setup_intent_id": setup["id"], "card": CARD}
        await self._client("card: confirm", "POST", "debug/cardpay_setup_intent/confirm", body)
        body = {"product_id": "pro_month", "setup_intent_id": setup["id"]}
        sub = (await self._client("card: subscribe", "POST", "cardpay_sub", body))["cardpay_sub"]
        await self._share()
        if self.place.maybe(0.3):
            await self._client("card: cancel", "DELETE", f"cardpay_sub/{sub['id']}")

    async def buy_by_wallet(self) -> None:
        """Buy coins by wallet. Some users approve an order, and never come back."""
        for _ in range(1 + self.random.randrange(2)):
            made = await self._client("wallet: create", "POST", "walletpay/create", {"product_id": "coins_100"})
            order = made["walletpay_order"]
            await self._approve(order)
            if self.place.maybe(0.9):
                await self._client("wallet: capture", "POST", "walletpay/capture", {"order_id": order["id"]})
                if self.place.maybe(0.2):
                    await self._dispute_capture(order["id"])

    async def _dispute_capture(self, order_id: str) -> None:
        """Dispute the payment of an order. The money of some disputes is taken at once, as in chargebacks."""
        books = await self._at_wallet()
        payment_id = next(each["id"] for each in books["payments"] if each["order_id"] == order_id)
        await self._at_wallet("dispute", payment_id=payment_id, reverses=self.place.maybe(0.5))
        await asyncio.sleep(self.random.uniform(*_DECISION_S))
        outcome = self.random.choice((None, "RESOLVED_SELLER_FAVOUR", "RESOLVED_BUYER_FAVOUR"))
        if outcome is not None:
            disputes = (await self._at_wallet())["disputes"]
            dispute_id = next(each["id"] for each in disputes if each["payment_id"] == payment_id)
            await self._at_wallet("resolve_dispute", dispute_id=dispute_id, outcome=outcome)

    async def subscribe_by_wallet(self) -> None:
        """Subscribe by wallet and upgrade. Most users leave the confirmation to webhooks."""
        made = await self._client("wallet: subscribe", "POST", "walletpay_sub", {"product_id": "pro_month"})
        sub = made["walletpay_sub"]
        await self._approve(sub)
        if self.place.maybe(0.3):
            await self._client("wallet: sync", "GET", f"walletpay_sub/{sub['id']}/sync")
        if self.place.maybe(0.3):
            await self._share()
        if self.place.maybe(0.7):
            body = {"new_bp_product_id": "pro_year"}
            made = await self._client("wallet: upgrade", "POST", f"walletpay_sub/{sub['id']}/upgrade", body)
            await self._approve(made["walletpay_sub"])
            if self.place.maybe(0.4):
                await self._client("wallet: sync upgrade", "GET", f"walletpay_sub/{sub['id']}/sync_upgrade")
            await self._share()

    async def _share(self) -> None:
        """Get the code of the subscription, unless that is not granted yet."""
        try:
            made = await self._client("share: code", "POST", "share_group/code", {})
        except Refused as refused:
            if refused.error_type != "item_not_found":
                raise
            return
        self.place.codes.append(made["share_code"])

    async def join(self) -> None:
        """Join a share group. It may be full, or have ended by an upgrade."""
        if not self.place.codes:
            return
        code = self.random.choice(self.place.codes)
        try:
            await self._client("share: join", "POST", "share_group/join", {"share_code": code})
        except Refused as refused:
            if refused.error_type not in {"share_group_limit", "item_not_found", "invalid_parameter"}:
                raise
            return
        self.place.client.observations.joined.append((code, self.uid))

    async def withdraw(self) -> None:
        await self.place.prove(self.uid)
        for _ in range(1 + self.random.randrange(2)):
            cash = self.random.randrange(100, 500) / 100
            body = {"cash_num": cash, "withdraw_id": uuid4().hex, "start_time": "2026-11-23T10:00:00Z"}
            await self._server("withdraw", "POST", "withdraw/", scope="withdrawals", json=body)


async def new_user(place: Place) -> User:
    """Log in with a new device. Raises `GivenUp`."""
    body = {"device": {"id": uuid4().hex}}
    try:
        answer = await place.client.ask("log in", "POST", "/bp/user/login", headers=dict, json=body)
    except Refused as refused:
        place.client.observations.misses.append(f"log in: {refused.error_type}")
        raise GivenUp from None
    return User(place, answer["user"]["uid"], answer["user"]["session"]["session_token"])
