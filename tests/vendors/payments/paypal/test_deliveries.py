"""The webhooks that the sandbox's PayPal sends: signed, repeated until accepted, and with faults on demand."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from aiohttp import web

from streams.wire.codec import loads
from streams.wire.ids import new_id
from tests.calendar.clock import utc_now
from tests.vendors.payments.paypal.calls import Merchant
from vendors.payments.paypal.events import WebhookEvent
from vendors.payments.paypal.webhooks import SignedWebhook
from vendors.sandbox.authority import ROOT

WEBHOOK_ID = "8PT597110X687430L"
WAIT_S = 10
SUBSCRIBED = ["PAYMENT.SALE.COMPLETED", "BILLING.SUBSCRIPTION.ACTIVATED"]


@dataclass
class Receiver:
    """An endpoint that PayPal calls."""

    url: str
    received: asyncio.Queue[tuple[Mapping[str, str], bytes]] = field(default_factory=asyncio.Queue)
    statuses: list[int] = field(default_factory=list)
    """The statuses of the next answers. Afterwards it is 200."""

    async def next(self) -> tuple[Mapping[str, str], bytes]:
        async with asyncio.timeout(WAIT_S):
            return await self.received.get()

    async def types(self, count: int) -> list[str]:
        return [loads((await self.next())[1])["event_type"] for _ in range(count)]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async def receive(request: web.Request) -> web.Response:
        found.received.put_nowait((request.headers, await request.read()))
        return web.Response(status=found.statuses.pop(0) if found.statuses else 200)

    app = web.Application()
    app.add_routes([web.post("/webhook", receive)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found = Receiver(f"http://127.0.0.1:{runner.addresses[0][1]}/webhook")
    yield found
    await runner.cleanup()


@pytest.fixture
async def listening_shop(shop: Merchant, receiver: Receiver) -> Merchant:
    await shop.control("webhook", id=WEBHOOK_ID, url=receiver.url)
    return shop


async def subscribe(shop: Merchant, receiver: Receiver, *, fault: str) -> None:
    made = await shop.subscribe()
    assert await receiver.types(1) == ["BILLING.SUBSCRIPTION.CREATED"]
    await shop.approve(made.approve_url, fault=fault)


async def events(shop: Merchant) -> list[WebhookEvent]:
    found, page = [], ""
    end = utc_now() + timedelta(days=5000)
    while True:
        read = await shop.paypal.events(start=utc_now() - timedelta(hours=1), end=end, page=page)
        found += read.events
        if not (page := read.next):
            return found


async def test_webhooks_are_verified_offline_and_by_a_call(listening_shop: Merchant, receiver: Receiver):
    order = await listening_shop.approved_order()
    await listening_shop.paypal.capture_order(new_id(), order.id)

    for event_type in ("CHECKOUT.ORDER.APPROVED", "PAYMENT.CAPTURE.COMPLETED", "CHECKOUT.ORDER.COMPLETED"):
        headers, body = await receiver.next()
        now = utc_now()
        webhook = SignedWebhook.read(headers, body, now=now)
        await listening_shop.paypal.verify_offline(
            webhook, webhook_id=WEBHOOK_ID, hosts=["127.0.0.1"], authorities=ROOT, now=now
        )
        await listening_shop.paypal.verify_online(webhook, webhook_id=WEBHOOK_ID)
        assert webhook.event.event_type == event_type


async def test_a_webhook_names_the_payment_and_its_subscription(listening_shop: Merchant, receiver: Receiver):
    await subscribe(listening_shop, receiver, fault="")

    _, body = await receiver.next()

    resource = loads(body)["resource"]
    payment = (await listening_shop.transactions(resource["billing_agreement_id"]))[0]
    assert (resource["id"], resource["amount"]) == (payment.id, {"currency": "USD", "total": "9.99"})
    assert (resource["state"], resource["custom"]) == ("completed", "user-7")


async def test_a_webhook_is_sent_until_it_is_accepted(listening_shop: Merchant, receiver: Receiver):
    receiver.statuses = [500, 404, 302]
    await listening_shop.subscribe()

    sent = [await receiver.next() for _ in range(4)]

    assert len({body for _, body in sent}) == 1
    assert len({headers["PAYPAL-TRANSMISSION-ID"] for headers, _ in sent}) == 4


async def test_lost_webhooks_are_in_the_list_of_events(listening_shop: Merchant, receiver: Receiver):
    await subscribe(listening_shop, receiver, fault="lost")
    await listening_shop.subscribe()

    assert await receiver.types(1) == ["BILLING.SUBSCRIPTION.CREATED"]
    assert [event.event_type for event in await events(listening_shop)] == [
        "BILLING.SUBSCRIPTION.CREATED",
        *reversed(SUBSCRIBED),
        "BILLING.SUBSCRIPTION.CREATED",
    ]


async def test_duplicates_are_the_same_event(listening_shop: Merchant, receiver: Receiver):
    await subscribe(listening_shop, receiver, fault="duplicate")

    sent = [body for _, body in [await receiver.next() for _ in range(4)]]

    assert [loads(body)["event_type"] for body in sent] == SUBSCRIBED * 2
    assert sent[:2] == sent[2:]


async def test_the_order_of_webhooks_can_be_reversed(listening_shop: Merchant, receiver: Receiver):
    await subscribe(listening_shop, receiver, fault="reordered")

    assert await receiver.types(2) == list(reversed(SUBSCRIBED))


async def test_delayed_webhooks_come_after_later_ones(listening_shop: Merchant, receiver: Receiver):
    await subscribe(listening_shop, receiver, fault="delayed")
    await listening_shop.subscribe()

    assert await receiver.types(3) == ["BILLING.SUBSCRIPTION.CREATED", *SUBSCRIBED]


async def test_a_share_of_the_webhooks_can_be_lost(listening_shop: Merchant, receiver: Receiver):
    await listening_shop.control("deliveries", fault="lost")
    await listening_shop.subscribe()
    await listening_shop.control("deliveries")
    await listening_shop.order()
    await listening_shop.subscribe()

    assert await receiver.types(1) == ["BILLING.SUBSCRIPTION.CREATED"]
    assert len(await events(listening_shop)) == 2
    assert receiver.received.empty()


async def test_the_list_of_events_has_pages(shop: Merchant):
    made = await shop.subscribed()
    await shop.control("renew", subscription_id=made.id, times=120)

    found = await events(shop)

    assert len({event.id for event in found}) == len(found) == 123
    assert [event.create_time for event in found] == sorted(
        (event.create_time for event in found if event.create_time), reverse=True
    )


async def test_renewals_by_the_clock_are_sent(listening_shop: Merchant, receiver: Receiver):
    await subscribe(listening_shop, receiver, fault="")
    await receiver.types(2)

    body = {"account": listening_shop.client_id, "offset_s": 40 * 86_400}
    async with listening_shop.browser.post(f"{listening_shop.sandbox.url}/_sandbox/clock", json=body) as response:
        assert response.status == 200

    assert await receiver.types(1) == ["PAYMENT.SALE.COMPLETED"]
