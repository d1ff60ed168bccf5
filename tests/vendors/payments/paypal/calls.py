"""A client of the sandbox's PayPal, a payer who approves on its pages, and control of the merchant."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
from pydantic import SecretStr

from streams.wire.ids import new_id
from streams.wire.money import Money
from tests.calendar.clock import utc_now
from vendors.account import Account
from vendors.calls.gate import Gate, GatePolicy
from vendors.http.transport import VendorHttp
from vendors.payments.paypal.client import PayPal
from vendors.payments.paypal.orders import Order
from vendors.payments.paypal.subscriptions import Subscription, Transaction
from vendors.sandbox.bill import BilledCall
from vendors.sandbox.payments.paypal.plans import MONTHLY
from vendors.sandbox.server import Running

RETURN, CANCEL = "https://app.test/paid?from=wallet", "https://app.test/cancelled"


@dataclass(frozen=True, slots=True)
class Merchant:
    """A merchant of its own for each test."""

    paypal: PayPal
    sandbox: Running
    client_id: str
    browser: aiohttp.ClientSession

    async def order(self, key: str = "", amount: Money | None = None) -> Order:
        return await self.paypal.create_order(
            key or new_id(),
            amount=amount or Money(199, "USD"),
            custom_id="user-7",
            description="100 coins",
            return_url=RETURN,
            cancel_url=CANCEL,
        )

    async def approved_order(self, *, fault: str = "") -> Order:
        order = await self.order()
        await self.approve(order.approve_url, fault=fault)
        return order

    async def subscribe(self, plan_id: str = MONTHLY, *, key: str = "") -> Subscription:
        return await self.paypal.create_subscription(
            key or new_id(),
            plan_id=plan_id,
            custom_id="user-7",
            return_url=RETURN,
            cancel_url=CANCEL,
            country="US",
        )

    async def subscribed(self, plan_id: str = MONTHLY) -> Subscription:
        """Return an approved subscription."""
        made = await self.subscribe(plan_id)
        await self.approve(made.approve_url)
        return await self.paypal.subscription(made.id)

    async def transactions(self, subscription_id: str) -> list[Transaction]:
        """Return all payments of a subscription."""
        start, end = utc_now() - timedelta(days=1), utc_now() + timedelta(days=4000)
        found = await self.paypal.transactions(subscription_id, start=start, end=end)
        return list(found)

    async def approve(self, url: str, *, action: str = "approve", fault: str = "") -> tuple[str, dict[str, str]]:
        """Decide on a page. Return where the payer is sent, and what the payer brings there."""
        form = {"action": action, "fault": fault}
        async with self.browser.post(url, data=form, allow_redirects=False) as response:
            assert response.status == 303
            address = urlsplit(response.headers["Location"])
        return address._replace(query="").geturl(), dict(parse_qsl(address.query))

    async def control(self, action: str, **fields: Any) -> dict[str, Any]:
        url = f"{self.sandbox.url}/paypal/_control/{action}"
        async with self.browser.post(url, json={"client_id": self.client_id, **fields}) as response:
            answer: dict[str, Any] = await response.json()
            assert response.status == 200, answer
            return answer

    async def move_clock(self, days: float) -> None:
        at = utc_now() + timedelta(days=days)
        await self.control("clock", at=at.isoformat())

    def calls(self, stage: str) -> list[BilledCall]:
        return [entry for entry in self.sandbox.bill.since(0) if entry.stage == stage]


@asynccontextmanager
async def merchant(
    http: VendorHttp, sandbox: Running, *, secret: str = "any", policy: GatePolicy | None = None
) -> AsyncIterator[Merchant]:
    """A new merchant. Its secret selects faults, as keys of the sandbox do."""
    client_id = new_id()
    account = Account("Default", "walletpay", f"{sandbox.url}/paypal", SecretStr(secret))
    async with aiohttp.ClientSession() as browser:
        paypal = PayPal(http, account, Gate("tests", policy or GatePolicy()), client_id=client_id)
        yield Merchant(paypal, sandbox, client_id, browser)
