"""The page of the sandbox's Stripe on which a payment is made with a test card, also with a fault."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from tests.vendors.payments.stripe.receiver import Receiver, receiving
from vendors.sandbox.server import Running

PAID = ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"]


@dataclass(frozen=True)
class Payer:
    """A customer with a browser, and the endpoint that receives the webhooks."""

    http: aiohttp.ClientSession
    receiver: Receiver

    async def intent(self) -> str:
        form = {"amount": "199", "currency": "usd"}
        async with self.http.post("/stripe/v1/payment_intents", data=form) as response:
            name: str = (await response.json())["id"]
            return name

    async def pay(self, intent: str, **form: str) -> str:
        """Send what a button of the page sends. Return the page that is shown then."""
        async with self.http.post(f"/stripe/pay/{intent}", data={"action": "pay", **form}) as response:
            assert response.status == 200
            return await response.text()

    async def status(self, intent: str) -> Any:
        async with self.http.get(f"/stripe/v1/payment_intents/{intent}") as response:
            return (await response.json())["status"]


@pytest.fixture
async def payer(sandbox: Running) -> AsyncIterator[Payer]:
    headers = {"Authorization": "Bearer sandbox"}
    async with receiving() as receiver, aiohttp.ClientSession(f"{sandbox.url}/", headers=headers) as http:
        form = {"url": receiver.url, "enabled_events[]": "*"}
        async with http.post("/stripe/v1/webhook_endpoints", data=form) as response:
            assert response.status == 200
        yield Payer(http, receiver)


async def test_an_open_payment_is_listed_and_paid(payer: Payer) -> None:
    intent = await payer.intent()
    async with payer.http.get("/stripe/pay") as response:
        listed = await response.text()
    assert f'<a href="/stripe/pay/{intent}"><b>1.99 USD</b>' in listed
    assert "waits for a card" in listed
    async with payer.http.get(f"/stripe/pay/{intent}") as response:
        assert 'name="fault" value="duplicate"' in await response.text()
    assert "succeeded" in await payer.pay(intent)
    assert await payer.status(intent) == "succeeded"
    await payer.receiver.wait(3)
    assert payer.receiver.types == PAID
    async with payer.http.get("/stripe/pay") as response:
        assert intent not in await response.text()


@pytest.mark.parametrize(
    ("fault", "sent"),
    [("duplicate", [*PAID, *PAID[1:]]), ("reordered", [PAID[0], *PAID[:0:-1]]), ("delayed", PAID)],
)
async def test_the_webhooks_of_one_payment_have_a_fault(payer: Payer, fault: str, sent: list[str]) -> None:
    intent = await payer.intent()
    await payer.receiver.wait(1)
    await payer.pay(intent, fault=fault)
    await payer.receiver.wait(len(sent))
    assert payer.receiver.types == sent


async def test_lost_webhooks_are_those_of_one_payment(payer: Payer) -> None:
    await payer.pay(await payer.intent(), fault="lost")
    await payer.pay(await payer.intent())
    await payer.receiver.wait(4)
    assert payer.receiver.types == [PAID[0], *PAID]


@pytest.mark.parametrize(
    ("fault", "status", "shown"),
    [
        ("decline", "requires_payment_method", "Your card was declined. <code>generic_decline</code>"),
        ("funds", "requires_payment_method", "Your card has insufficient funds. <code>insufficient_funds</code>"),
        ("authenticate", "requires_action", "Authenticate the payment"),
        ("dispute", "succeeded", "Paid"),
    ],
)
async def test_cards_can_have_a_fault(payer: Payer, fault: str, status: str, shown: str) -> None:
    intent = await payer.intent()
    assert shown in await payer.pay(intent, fault=fault)
    assert await payer.status(intent) == status


async def test_a_declined_payment_is_paid_with_the_same_form(payer: Payer) -> None:
    intent = await payer.intent()
    assert 'value="pay"' in await payer.pay(intent, fault="decline")
    assert "generic_decline" not in await payer.pay(intent)
    assert await payer.status(intent) == "succeeded"


@pytest.mark.parametrize(
    ("action", "status", "shown"),
    [
        ("approve", "succeeded", "Paid"),
        ("refuse", "requires_payment_method", "<code>payment_intent_authentication_failure</code>"),
    ],
)
async def test_the_owner_of_a_card_authenticates_a_payment(
    payer: Payer, action: str, status: str, shown: str
) -> None:
    intent = await payer.intent()
    await payer.pay(intent, fault="authenticate")
    assert shown in await payer.pay(intent, action=action)
    assert await payer.status(intent) == status


async def test_the_browser_returns_to_the_app_once_the_payment_is_made(payer: Payer) -> None:
    intent = await payer.intent()
    page, query = f"/stripe/pay/{intent}", {"back": "http://127.0.0.1:9/done?app=a"}
    for fault, to in (
        ("decline", f"{page}?back="),
        ("", f"http://127.0.0.1:9/done?app=a&payment_intent={intent}&redirect_status=succeeded"),
    ):
        form = {"action": "pay", "fault": fault}
        async with payer.http.post(page, params=query, data=form, allow_redirects=False) as response:
            assert response.status == 303
            assert response.headers["Location"].startswith(to)


async def test_the_browser_is_sent_to_no_other_scheme(payer: Payer) -> None:
    page = f"/stripe/pay/{await payer.intent()}"
    form = {"action": "pay"}
    async with payer.http.post(page, params={"back": "javascript:alert(1)"}, data=form) as response:
        shown = await response.text()
    assert "Paid" in shown
    assert 'href="javascript' not in shown


async def test_unknown_payments_have_no_page(payer: Payer) -> None:
    async with payer.http.get("/stripe/pay/pi_none") as response:
        assert response.status == 404
