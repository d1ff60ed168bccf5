"""Our client against localstripe, an emulation of Stripe that we have not written."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from tests.waiting import until
from vendors.account import Account
from vendors.calls.gate import Gate, GatePolicy
from vendors.http.transport import VendorHttp
from vendors.payments.stripe.client import Stripe
from vendors.payments.stripe.errors import CardDeclined

KEY = "sk_test_localstripe"
# The package listens on all addresses, so its application is served here.
PROGRAM = """
import sys
from aiohttp import web
from localstripe.server import app
async def main():
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
import asyncio
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.run_forever()
"""


@pytest.fixture(scope="module")
async def url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    folder: Path = tmp_path_factory.mktemp("localstripe")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, cwd=folder, env={"TMPDIR": str(folder)}, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.wait()


@pytest.fixture
def stripe(http: VendorHttp, url: str) -> Stripe:
    return Stripe(http, Account("Default", "cardpay", url, SecretStr(KEY)), Gate("tests", GatePolicy()))


async def send(url: str, path: str, **form: str) -> dict[str, Any]:
    """Do something that our client does not do."""
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as http,
        http.post(f"{url}/v1/{path}", data=form) as response,
    ):
        assert response.status == 200, await response.text()
        answer: dict[str, Any] = await response.json()
        return answer


async def customer_with_card(stripe: Stripe, name: str = "pm_card_visa") -> tuple[str, str]:
    customer = (await stripe.create_customer("1", metadata={"uid": "1"})).id
    return customer, (await stripe.attach("2", name, customer=customer)).id


async def test_a_payment_with_the_newest_card_succeeds(stripe: Stripe) -> None:
    customer, method = await customer_with_card(stripe)
    assert [card.id for card in await stripe.cards(customer)] == [method]
    paid = await stripe.create_payment_intent(
        "3", amount=199, currency="USD", customer=customer, payment_method=method, confirm=True, email=None,
        metadata={"payment": "1"},
    )  # fmt: skip
    assert (paid.status, paid.amount, paid.currency, paid.customer) == ("succeeded", 199, "usd", customer)
    assert paid.metadata == {"payment": "1"}
    assert await stripe.payment_intent(paid.id) == paid
    assert await stripe.refunds(paid.id) == []


async def test_a_payment_is_created_first_and_confirmed_later(stripe: Stripe) -> None:
    customer, method = await customer_with_card(stripe)
    created = await stripe.create_payment_intent(
        "3", amount=199, currency="USD", customer=customer, payment_method=method, confirm=False, email=None,
        metadata={},
    )  # fmt: skip
    assert (created.status, created.payment_method) == ("requires_confirmation", method)
    assert (await stripe.confirm_payment_intent("4", created.id, payment_method=None)).status == "succeeded"


async def test_a_card_that_cannot_be_attached_is_declined(stripe: Stripe) -> None:
    with pytest.raises(CardDeclined):
        await customer_with_card(stripe, "pm_card_visa_chargeDeclined")


async def test_a_refund_is_found(stripe: Stripe, url: str) -> None:
    customer, method = await customer_with_card(stripe)
    paid = await stripe.create_payment_intent(
        "3", amount=199, currency="USD", customer=customer, payment_method=method, confirm=True, email=None,
        metadata={},
    )  # fmt: skip
    refund = await send(url, "refunds", payment_intent=paid.id, amount="99")
    [found] = await stripe.refunds(paid.id)
    assert (found.id, found.amount, found.status) == (refund["id"], 99, "succeeded")


async def test_a_setup_intent_is_confirmed(stripe: Stripe) -> None:
    customer = (await stripe.create_customer("1", metadata={})).id
    created = await stripe.create_setup_intent("2", customer=customer)
    assert (created.status, created.customer) == ("requires_payment_method", customer)
    done = await stripe.confirm_setup_intent("3", created.id, payment_method="pm_card_visa")
    assert (done.status, await stripe.setup_intent(created.id)) == ("succeeded", done)


async def test_a_subscription_and_its_invoices_are_read(stripe: Stripe, url: str) -> None:
    customer, method = await customer_with_card(stripe)
    await stripe.set_default_method("3", customer, payment_method=method)
    assert (await stripe.customer(customer)).default_method == method
    product = await send(url, "products", name="Pro", type="service")
    plan = await send(url, "plans", amount="999", currency="usd", interval="month", product=product["id"])
    form = {"customer": customer, "items[0][plan]": plan["id"]}
    created = await send(url, "subscriptions", **form)
    read = await stripe.subscription(created["id"])
    assert (read.status, read.customer) == ("active", customer)
    assert read.period_end == created["current_period_end"]
    cancelled = await stripe.cancel_at_period_end("4", read.id)
    assert cancelled.cancel_at_period_end
    invoice = await stripe.invoice(read.latest_invoice or "")
    assert (invoice.status, invoice.amount_paid, invoice.subscription_id) == ("paid", 999, read.id)


async def test_events_are_listed(stripe: Stripe, url: str) -> None:
    customer, method = await customer_with_card(stripe)
    await stripe.create_payment_intent(
        "3", amount=199, currency="USD", customer=customer, payment_method=method, confirm=True, email=None,
        metadata={},
    )  # fmt: skip

    async def listed() -> bool:
        page = await stripe.events(since=1, after=None)
        return "payment_intent.succeeded" in [event["type"] for event in page.data]

    await until(listed)
