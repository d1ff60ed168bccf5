"""Several configs and apps use one account of the platform: an event belongs to the config that made its object."""

from datetime import timedelta
from typing import Any

import pytest

from app.webhooks import compare_events
from storage.operators.audit import COMMAND
from storage.payments.missed_events import CompareEvents
from tests.app.callers import work_off
from tests.app.operators import Operator
from tests.app.payments.wallet.wallets import COINS, MONTHLY, PRO, WEBHOOK, Wallet
from tests.calendar.clock import utc_now
from tests.waiting import until

SECOND = "2PT597110X687430L"
"""The webhook of the config `Second`."""
GEMS = {"type": "consumable", "asset": "gems", "quantity": 5, "price": {"amount": 99, "currency": "USD"}}
VIP = {"type": "subscription", "asset": "vip", "period": "P1M"}


@pytest.fixture(autouse=True)
async def _shared(wallet: Wallet) -> None:
    """Add a config `Second` of the same account, with its own products."""
    await wallet.configure(config="Second", webhook_id=SECOND)
    await wallet.configure(webhook_id=WEBHOOK)
    await put(wallet, "products", "gems", {**GEMS, "walletpay": {"product_id": COINS, "config": "Second"}})
    plan = {"plan_id": MONTHLY, "product_id": PRO, "config": "Second"}
    await put(wallet, "products", "vip", {**VIP, "walletpay": plan})


async def put(wallet: Wallet, kind: str, name: str, value: Any, *, app: str = "default") -> None:
    await wallet.server.services.configs.put(app, kind, name, value, author="test", origin=COMMAND)


async def connect(wallet: Wallet, config: str, webhook: str) -> None:
    url = f"{wallet.server.url}/bp/webhook/walletpay/default/{config}"
    await wallet.control("webhook", id=webhook, url=url)


async def bought(wallet: Wallet) -> None:
    """Pay one order and one subscription with each config, and refund the order of `Second`."""
    for product in ("coins", "gems"):
        order = await wallet.order(product)
        await wallet.approve(order["approve_link_href"])
        assert (await wallet.capture(order["id"]))[0] == 200
    for product in ("month", "vip"):
        await wallet.subscribed(product)
    [(gems,)] = await wallet.rows("select key from asset_entries where name = 'gems'")
    await wallet.control("refund", payment_id=gems.removeprefix("wallet:capture:"))


async def compare(wallet: Wallet, *configs: str, app: str = "default") -> list[tuple[str, str]]:
    """Compare the events of each config ten minutes later. Return what is reported: platforms and subjects."""
    await wallet.travel(utc_now() + timedelta(minutes=10))
    for config in configs:
        await compare_events(wallet.server.services, CompareEvents(app_id=app, kind="walletpay", config=config))
    found = await Operator(wallet.server)("GET", f"payments/mismatches?app={app}&size=100")
    missed = [one for one in found.body["mismatches"] if one["kind"] == "missed_event"]
    return sorted((one["subject"], one["detail"]) for one in missed)


async def listed(wallet: Wallet, *objects: str) -> list[tuple[str, str]]:
    """The ids and types of the platform's events, or of those whose resource names one of `objects`."""
    page = await wallet.platform("GET", "/v1/notifications/webhooks-events?page_size=100")
    return sorted(
        (event["id"], event["event_type"])
        for event in page["events"]
        if not objects or any(name in str(event["resource"]) for name in objects)
    )


async def sold_by_another(wallet: Wallet) -> tuple[str, str]:
    """Let another program sell something with the same account. Return the order and the capture."""
    body = {
        "intent": "CAPTURE",
        "purchase_units": [{"amount": {"currency_code": "USD", "value": "5.00"}}],
        "application_context": {"return_url": "https://app.example", "cancel_url": "https://app.example"},
    }
    order = await wallet.platform("POST", "/v2/checkout/orders", body)
    [link] = [link["href"] for link in order["links"] if link["rel"] == "approve"]
    await wallet.approve(link)
    await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    done = await wallet.platform("GET", f"/v2/checkout/orders/{order['id']}")
    capture: str = done["purchase_units"][0]["payments"]["captures"][0]["id"]
    return order["id"], capture


async def taken_back(wallet: Wallet) -> bool:
    await work_off(wallet.server.services)
    return (await wallet.kinds()).count("refund") == 1


async def test_each_event_is_reported_once_by_the_config_that_made_its_object(wallet: Wallet) -> None:
    await wallet.control("deliveries", fault="lost")
    await bought(wallet)
    reported = await compare(wallet, "Second", "Default")
    assert reported == await listed(wallet)
    assert await wallet.rows("select count(*) from webhooks") == [(len(reported),)]
    for product, config in {"month": "Default", "vip": "Second"}.items():
        named = "select subscription_id from wallet_subscriptions where bp_product_id = $1"
        about = f"select distinct config from webhooks where position(({named}) in convert_from(body, 'UTF8')) > 0"
        assert await wallet.rows(about, product) == [(config,)]
    assert await taken_back(wallet)
    assert await compare(wallet, "Default", "Second") == reported


async def test_an_event_that_the_webhook_of_another_config_has_received_is_applied_once_and_not_missed(
    wallet: Wallet,
) -> None:
    await connect(wallet, "Default", WEBHOOK)
    await bought(wallet)
    events = await listed(wallet)
    await until(lambda: received(wallet, len(events)))
    assert await taken_back(wallet)
    assert await compare(wallet, "Default", "Second") == []
    assert sorted(await wallet.kinds()) == ["grant"] * 4 + ["refund"]


async def received(wallet: Wallet, count: int) -> bool:
    return await wallet.rows("select count(*) from webhooks") == [(count,)]


async def test_events_that_both_webhooks_receive_are_applied_once(wallet: Wallet) -> None:
    await connect(wallet, "Default", WEBHOOK)
    await connect(wallet, "Second", SECOND)
    await bought(wallet)
    events = await listed(wallet)
    await until(lambda: received(wallet, 2 * len(events)))
    assert await taken_back(wallet)
    assert await compare(wallet, "Default", "Second") == []
    assert sorted(await wallet.kinds()) == ["grant"] * 4 + ["refund"]


async def test_events_of_another_app_and_of_unknown_objects_are_neither_reported_nor_stored(wallet: Wallet) -> None:
    config = {"base_url": f"{wallet.sandbox.url}/paypal", "client_id": wallet.client_id, "client_secret": "sandbox"}
    await put(wallet, "apps", "default", {"title": "Other"}, app="other")
    await put(wallet, "walletpay", "Default", {**config, "webhook_id": "WH-3"}, app="other")
    await connect(wallet, "Default", WEBHOOK)
    await bought(wallet)
    order_id, capture = await sold_by_another(wallet)
    await wallet.control("refund", payment_id=capture)
    events = await listed(wallet)
    await until(lambda: received(wallet, len(events)))
    await wallet.rows("delete from webhooks")
    own = [event for event in events if event not in await listed(wallet, order_id, capture)]
    assert await compare(wallet, "Default", app="other") == []
    assert await compare(wallet, "Default", "Second") == own
    assert len(own) < len(events)
    assert await wallet.rows("select 1 from webhooks where app_id = 'other'") == []


async def test_the_payment_of_a_foreign_event_is_read_once_for_each_config(wallet: Wallet) -> None:
    await wallet.control("deliveries", fault="lost")
    _, capture = await sold_by_another(wallet)
    await wallet.control("refund", payment_id=capture)

    def reads() -> int:
        made = [call.asked.get("path", "") for call in wallet.sandbox.bill.since(0) if call.asked]
        return sum("/payments/refund" in path or "/payments/captures" in path for path in made)

    counts, before = [], reads()
    for _ in range(3):
        await compare(wallet, "Default")
        counts.append(reads() - before)
    await compare(wallet, "Second")
    counts.append(reads() - before)
    assert counts[0] > 0
    assert counts == [counts[0], counts[0], counts[0], 2 * counts[0]]


async def test_foreign_events_that_are_no_longer_listed_are_forgotten(wallet: Wallet) -> None:
    await sold_by_another(wallet)
    await compare(wallet, "Default")
    assert await wallet.rows("select 1 from foreign_events") != []
    await wallet.travel(utc_now() + timedelta(hours=3))
    await wallet.find_missed_events()
    assert await wallet.rows("select 1 from foreign_events") == []


async def test_refunds_of_payments_that_are_not_known_yet_belong_to_the_config_of_their_order_or_subscription(
    wallet: Wallet,
) -> None:
    """Nothing of the order and of the subscription was reported, so that only the platform knows their payments."""
    await wallet.control("deliveries", fault="lost")
    order = await wallet.order("gems")
    await wallet.approve(order["approve_link_href"])
    await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    done = await wallet.platform("GET", f"/v2/checkout/orders/{order['id']}")
    await wallet.control("refund", payment_id=done["purchase_units"][0]["payments"]["captures"][0]["id"])
    sub = await wallet.subscribe("vip")
    await wallet.approve(sub["approve_link_href"])
    sales = [event for event in await resources(wallet) if event.get("billing_agreement_id") == sub["id"]]
    await wallet.control("refund", payment_id=sales[0]["id"])
    events = await listed(wallet)
    assert {"PAYMENT.CAPTURE.REFUNDED", "PAYMENT.SALE.REFUNDED"} <= {event_type for _, event_type in events}
    assert await compare(wallet, "Default", "Second") == events
    assert await wallet.rows("select distinct config from webhooks") == [("Second",)]


async def resources(wallet: Wallet) -> list[dict[str, Any]]:
    page = await wallet.platform("GET", "/v1/notifications/webhooks-events?page_size=100")
    return [event["resource"] for event in page["events"]]
