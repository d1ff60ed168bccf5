"""Several configs and apps use one account of the platform: an event belongs to the config that made its object."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.payments.cards.webhooks import CARD_EVENTS
from app.webhooks import compare_events
from storage.operators.audit import COMMAND
from storage.payments.missed_events import CompareEvents
from streams.wire.codec import rfc3339
from tests.app.callers import ask, work_off
from tests.app.operators import Operator
from tests.app.payments.cards.shop import CONFIG, Buyer, Shop, open_shop
from tests.app.payments.cards.subscribers import subscribed
from tests.calendar.clock import utc_now
from tests.running.servers import Databases
from tests.waiting import until

VIP = {"type": "subscription", "asset": "vip", "period": "P1M"}


@pytest.fixture
async def testbed(databases: Databases, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop of the test: the list of events has those of all tests before."""
    async with open_shop(databases, tmp_path) as opened:
        yield opened


@pytest.fixture(autouse=True)
async def _shared(shop: Shop) -> None:
    """Add a config `Second` of the same account, with its own subscription."""
    await shop.configure("Second")
    await shop.put("products", "vip", {**VIP, "cardpay": {"price_id": "price_pro_month", "config": "Second"}})


async def bought(shop: Shop, buyer: Buyer) -> str:
    """Pay one purchase and one subscription with each config, and refund the purchase of `Second`. Return it."""
    first = await shop.created(buyer, product_id="coins_100")
    second = await shop.created(buyer, product_id="coins_100", pay_platform_config_name="Second")
    for intent in (first, second):
        await shop.pay(intent["id"])
    await subscribed(shop, buyer)
    card = await shop.link(second["customer_id"])
    await subscribed(shop, buyer, product_id="vip", payment_method_id=card)
    await shop.platform("refunds", payment_intent=second["id"])
    name: str = second["id"]
    return name


async def compare(shop: Shop, *configs: str, app: str = "default") -> list[str]:
    """Compare the events of each config some minutes later. Return the events that are reported."""
    at = rfc3339(utc_now() + timedelta(minutes=5))
    assert (await ask(shop.server, "POST", "/dev/clock", json={"app": app, "at": at}))[0] == 200
    for config in configs:
        await compare_events(shop.server.services, CompareEvents(app_id=app, kind="cardpay", config=config))
    found = await Operator(shop.server)("GET", f"payments/mismatches?app={app}&size=100")
    return sorted(one["subject"] for one in found.body["mismatches"] if one["kind"] == "missed_event")


async def listed(shop: Shop, *objects: str) -> list[str]:
    """The platform's events that must not be missed, or those of them that name one of `objects`."""
    return sorted(
        event["id"]
        for event in await shop.listed("events", limit="100")
        if event["type"].startswith(CARD_EVENTS.relevant)
        and (not objects or any(name in str(event["data"]["object"]) for name in objects))
    )


async def rows(shop: Shop, statement: str, *values: Any) -> list[Any]:
    async with shop.server.services.database.connection() as conn:
        return [tuple(row) for row in await conn.fetch(statement, *values)]


async def kinds(shop: Shop, buyer: Buyer) -> list[tuple[str, str]]:
    """The kinds of the user's entries, with the channels that have won."""
    await work_off(shop.server.services)
    statement = "select kind, channel from asset_entries where uid = $1 order by 1, entry_id"
    return await rows(shop, statement, buyer.uid)


async def test_each_event_is_reported_once_by_the_config_that_made_its_object(shop: Shop, buyer: Buyer) -> None:
    second = await bought(shop, buyer)
    reported = await compare(shop, "Second", "Default")
    assert reported == await listed(shop)
    configs = await rows(
        shop, "select distinct config from webhooks where event_id = any($1)", await listed(shop, second)
    )
    assert configs == [("Second",)]
    assert [kind for kind, _ in await kinds(shop, buyer)] == ["grant"] * 4 + ["refund"]
    assert await compare(shop, "Default", "Second") == reported


async def test_the_webhook_of_one_config_applies_the_events_of_another(shop: Shop, buyer: Buyer) -> None:
    await shop.send_webhooks()
    await bought(shop, buyer)
    await until(lambda: shop.sandbox.sandbox.deliveries.is_idle)
    found = await kinds(shop, buyer)
    assert [kind for kind, _ in found] == ["grant"] * 4 + ["refund"]
    assert ("refund", "webhook") in found
    assert await compare(shop, "Default", "Second") == []


async def test_events_of_another_app_and_of_unknown_objects_are_neither_reported_nor_stored(
    shop: Shop, buyer: Buyer
) -> None:
    configs = shop.server.services.configs
    for kind, name, value in (("apps", "default", {"title": "Other"}), ("cardpay", "Default", dict(CONFIG))):
        await configs.put("other", kind, name, value, author="test", origin=COMMAND)
    await bought(shop, buyer)
    unknown = await shop.platform("payment_intents", amount="500", currency="usd")
    await shop.pay(unknown["id"])
    await shop.platform("refunds", payment_intent=unknown["id"])
    events, foreign = await listed(shop), await listed(shop, unknown["id"])
    assert len(foreign) >= 2
    assert await compare(shop, "Default", app="other") == []
    assert await compare(shop, "Default", "Second") == [event for event in events if event not in foreign]
    assert await rows(shop, "select 1 from webhooks where app_id = 'other' or event_id = any($1)", foreign) == []


async def test_the_payment_of_a_foreign_event_is_read_once_for_each_config(shop: Shop) -> None:
    unknown = await shop.platform("payment_intents", amount="500", currency="usd")
    await shop.pay(unknown["id"])
    await shop.platform("refunds", payment_intent=unknown["id"])

    def reads() -> int:
        return sum(call.asked.get("path") == "payment_intents/{id}" for call in shop.sandbox.bill.since(0))

    counts, before = [], reads()
    for configs in (["Default"], ["Default"], ["Second"], ["Second"]):
        await compare(shop, *configs)
        counts.append(reads() - before)
    assert counts[0] > 0
    assert counts == [counts[0], counts[0], 2 * counts[0], 2 * counts[0]]
