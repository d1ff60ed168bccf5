"""Users keep what they pay for while Stripe renews it, and lose it when a payment has failed or it is cancelled.

At the end of a period, Stripe begins the next one and leaves the subscription `active`. The invoice is a draft for
about an hour, and is charged then. A payment that fails makes the subscription `past_due`
(https://docs.stripe.com/billing/subscriptions/overview).

Stripe sets `cancel_at` without `cancel_at_period_end` if a merchant cancels on a date, and in the billing mode
`flexible` (`subscription` in `openapi/spec3.json` of stripe/openapi).
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.payments.cards.reconciliation import reconcile_card_platform
from storage.assets.differences import find_differences
from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from storage.payments.cards.reconciliation import ReconcileCardPlatform
from streams.wire.codec import from_rfc3339
from tests.app.callers import work_off, working
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import cancelled, move_to, origins, read, subscribed
from tests.app.payments.reports import add_sink, reported
from tests.calendar.clock import epoch_s
from tests.waiting import until
from vendors.sandbox.faults import key_of

BEGAN = "2027-03-15T12:00:30Z"
PAID_END = "2027-04-15T12:00"
CHARGED = "2027-04-15T13:10:00Z"
IN_PERIOD = "2027-03-25T08:00:00Z"
LATER = "2027-05-02T08:00:00Z"
"""In the second period."""


@pytest.fixture
async def sink(shop: Shop) -> AsyncIterator[None]:
    await add_sink(shop.server, events=["asset"])
    yield
    key = ConfigKey("default", "events", "tests")
    await shop.server.services.configs.delete(key, author="test", origin=COMMAND)


async def begun(shop: Shop, buyer: Buyer) -> tuple[Buyer, str]:
    """Subscribe. Return the id of the subscription."""
    buyer = await move_to(shop, buyer, BEGAN)
    return buyer, (await subscribed(shop, buyer))["cardpay_sub"]["id"]


async def at(shop: Shop, buyer: Buyer, moment: str) -> tuple[Buyer, dict[str, Any]]:
    """Move the clocks, let webhooks and the reconciliation do what is due, and return the user's asset."""
    services, to_s = shop.server.services, from_rfc3339(moment).timestamp()
    await services.clock.move("default", offset_s=int(to_s - epoch_s()))
    now: int = (await shop.control("clock", by_s=0))["now"]
    await shop.control("clock", by_s=int(to_s) - now)
    await until(lambda: shop.sandbox.sandbox.deliveries.is_idle)
    await work_off(services)
    if not await shop.listed("webhook_endpoints"):
        await reconcile_card_platform(services, ReconcileCardPlatform(app_id="default", config="Default"))
    buyer = await shop.back(buyer.device)
    return buyer, (await shop.assets(buyer))["pro"]


@pytest.mark.parametrize("webhooks", [True, False])
async def test_a_renewal_leaves_no_gap(shop: Shop, buyer: Buyer, sink: None, webhooks: bool) -> None:
    if webhooks:
        await shop.send_webhooks()
    buyer, name = await begun(shop, buyer)
    for moment in ("11:59:00", "12:00:29", "12:00:31", "12:01:00", "12:30:00", "12:59:59", "13:10:00"):
        buyer, pro = await at(shop, buyer, f"2027-04-15T{moment}Z")
        assert pro["valid_seconds"] > 0, moment
    assert (pro["origin"], pro["expire_time"][:16]) == ("renewal", "2027-05-16T12:00")
    assert (await read(shop, buyer, name))["cardpay_sub"]["status"] == "active"
    events = await reported(shop.server, buyer.uid, "asset")
    assert [(event["kind"], event["ends_at"][:16], event["grace_ends_at"][:16]) for event in events] == [
        ("grant", PAID_END, "2027-04-16T12:00"),
        ("grant", "2027-05-15T12:00", "2027-05-16T12:00"),
    ]
    assert [difference async for difference in find_differences(shop.server.services.database)] == []


async def test_while_an_invoice_is_a_draft_the_period_that_it_bills_is_not_granted(
    shop: Shop, buyer: Buyer
) -> None:
    buyer, name = await begun(shop, buyer)
    buyer, _ = await at(shop, buyer, "2027-04-15T12:30:00Z")
    answer = await read(shop, buyer, name)
    [draft, _] = await shop.listed("invoices", subscription=name)
    assert (draft["status"], answer["cardpay_sub"]["status"]) == ("draft", "active")
    assert answer["cardpay_sub"]["current_period_end_ts"] > answer["assets"][0]["valid_seconds"] + 30 * 86400
    assert await origins(shop, buyer) == ["purchase"]


@pytest.mark.parametrize("webhooks", [True, False])
async def test_a_failed_payment_ends_the_asset_with_the_paid_period(
    shop: Shop, buyer: Buyer, webhooks: bool
) -> None:
    if webhooks:
        await shop.send_webhooks()
    buyer, name = await begun(shop, buyer)
    customer: str = (await read(shop, buyer, name))["cardpay_sub"]["customer_id"]
    failing = await shop.link(customer, "pm_card_chargeCustomerFail")
    await shop.platform(f"subscriptions/{name}", default_payment_method=failing)
    buyer, pro = await at(shop, buyer, "2027-04-15T12:30:00Z")
    assert pro["valid_seconds"] > 0
    buyer, pro = await at(shop, buyer, CHARGED)
    assert (pro["valid_seconds"], pro["expire_time"][:16]) == (0, PAID_END)
    card = await shop.link(customer)
    assert (await subscribed(shop, buyer, payment_method_id=card))["cardpay_sub"]["status"] == "active"
    pro = (await shop.assets(buyer))["pro"]
    assert (pro["expire_time"][:16], pro["valid_seconds"] > 0) == ("2027-05-16T12:00", True)
    assert await origins(shop, buyer) == ["purchase", "extend", "renewal"]
    assert [difference async for difference in find_differences(shop.server.services.database)] == []


async def test_a_platform_that_cannot_be_read_ends_the_asset_after_the_tolerance(shop: Shop, buyer: Buyer) -> None:
    await shop.configure(renewal_tolerance_s=7200)
    buyer, _ = await begun(shop, buyer)
    await shop.configure(renewal_tolerance_s=7200, secret_key=key_of(fault="unauthorized"))
    buyer, pro = await at(shop, buyer, "2027-04-15T13:59:00Z")
    assert 0 < pro["valid_seconds"] <= 120
    buyer, pro = await at(shop, buyer, "2027-04-15T14:01:00Z")
    assert pro["valid_seconds"] == 0
    await shop.configure()
    _, pro = await at(shop, buyer, "2027-04-15T14:05:00Z")
    assert (pro["origin"], pro["valid_seconds"] > 0) == ("renewal", True)


async def test_the_read_before_a_renewal_extends_what_does_not_last_long_enough(shop: Shop, buyer: Buyer) -> None:
    await shop.configure(renewal_tolerance_s=0)
    buyer, _ = await begun(shop, buyer)
    assert (await shop.assets(buyer))["pro"]["expire_time"][:16] == PAID_END
    await shop.configure()
    buyer, pro = await at(shop, buyer, "2027-04-14T13:00:00Z")
    assert pro["expire_time"][:16] == "2027-04-16T12:00"
    assert await origins(shop, buyer) == ["purchase", "extend"]
    async with shop.server.services.database.connection() as conn:
        extended = "select count(*) from payment_mismatches where subject like 'extend:%'"
        assert await conn.fetchval(extended) == 0  # No event was missed.


async def test_a_cancelled_subscription_ends_with_its_period(shop: Shop, buyer: Buyer) -> None:
    buyer, name = await begun(shop, buyer)
    [pro] = (await cancelled(shop, buyer, name))["assets"]
    assert pro["expire_time"][:16] == PAID_END
    [pro] = (await subscribed(shop, buyer))["assets"]
    assert pro["expire_time"][:16] == "2027-04-16T12:00"


async def test_a_period_that_is_cancelled_before_it_is_charged_is_kept(shop: Shop, buyer: Buyer) -> None:
    buyer, name = await begun(shop, buyer)
    buyer, _ = await at(shop, buyer, "2027-04-15T12:30:00Z")
    await cancelled(shop, buyer, name)
    buyer, pro = await at(shop, buyer, "2027-04-15T12:59:00Z")
    assert (pro["valid_seconds"] > 0, pro["sub_canceled"]) == (True, True)
    _, pro = await at(shop, buyer, CHARGED)
    assert (pro["expire_time"][:16], pro["sub_canceled"]) == ("2027-05-15T12:00", True)


async def test_members_of_a_share_group_keep_their_asset_while_it_renews(shop: Shop, buyer: Buyer) -> None:
    await shop.put("share_groups", "pro", {"quota": 1, "platforms": ["cardpay"]})
    buyer, _ = await begun(shop, buyer)
    member = await shop.buyer()
    _, group = await shop.client_call(buyer, "POST", "/bp/asset/share_group/code")
    join = {"share_code": group["share_code"]}
    assert (await shop.client_call(member, "POST", "/bp/asset/share_group/join", json=join))[0] == 200
    member, pro = await at(shop, member, "2027-04-15T12:30:00Z")
    assert (pro["origin"], pro["valid_seconds"] > 0) == ("share", True)


async def end_at(shop: Shop, name: str, moment: str) -> dict[str, Any]:
    """Let the merchant cancel a subscription at a date, on the platform's pages."""
    made = await shop.platform(f"subscriptions/{name}", cancel_at=str(int(from_rfc3339(moment).timestamp())))
    assert made["cancel_at_period_end"] is False
    return made


async def test_a_subscription_that_ends_within_its_period_is_cancelled(shop: Shop, buyer: Buyer) -> None:
    buyer, name = await begun(shop, buyer)
    await end_at(shop, name, IN_PERIOD)
    answer = await read(shop, buyer, name)
    sub, [pro] = answer["cardpay_sub"], answer["assets"]
    assert (pro["sub_canceled"], pro["is_auto_renewable"], pro["expire_time"]) == (True, False, IN_PERIOD)
    assert sub["canceled_ts"] == pro["sub_canceled_ts"] > 0
    buyer = await move_to(shop, buyer, "2027-03-25T07:59:00Z")
    assert (await read(shop, buyer, name))["assets"][0]["valid_seconds"] > 0
    buyer = await move_to(shop, buyer, "2027-03-25T08:01:00Z")
    answer = await read(shop, buyer, name)
    sub, [pro] = answer["cardpay_sub"], answer["assets"]
    assert (sub["status"], pro["valid_seconds"], pro["expire_time"]) == ("canceled", 0, IN_PERIOD)
    assert await origins(shop, buyer) == ["purchase", "cancel"]
    assert [difference async for difference in find_differences(shop.server.services.database)] == []


async def test_subscribing_again_clears_the_date(shop: Shop, buyer: Buyer) -> None:
    buyer, name = await begun(shop, buyer)
    await end_at(shop, name, IN_PERIOD)
    await read(shop, buyer, name)
    answer = await subscribed(shop, buyer)
    sub, [pro] = answer["cardpay_sub"], answer["assets"]
    assert (sub["id"], sub["canceled_ts"], pro["sub_canceled"], pro["is_auto_renewable"]) == (name, 0, False, True)
    assert pro["expire_time"][:16] == "2027-04-16T12:00"
    [at_platform] = await shop.listed("subscriptions", customer=sub["customer_id"])
    assert (at_platform["cancel_at"], at_platform["canceled_at"]) == (None, None)


async def test_an_account_whose_subscription_ends_at_a_date_can_be_deactivated(shop: Shop, buyer: Buyer) -> None:
    """One that would be paid again before that date is cancelled with the account."""
    buyer, name = await begun(shop, buyer)
    await end_at(shop, name, LATER)
    await read(shop, buyer, name)
    for step in ("", "/confirm"):
        assert (await shop.client_call(buyer, "POST", f"/bp/user/me/deactivate{step}"))[0] == 200

    async def ended() -> bool:
        [found] = [sub for sub in await shop.listed("subscriptions", status="all") if sub["id"] == name]
        return bool(found["status"] == "canceled")

    async with working(shop.server.services):
        await until(ended)


async def test_a_subscription_that_ends_in_a_later_period_renews_until_then(shop: Shop, buyer: Buyer) -> None:
    buyer, name = await begun(shop, buyer)
    await end_at(shop, name, LATER)
    [pro] = (await read(shop, buyer, name))["assets"]
    assert (pro["sub_canceled"], pro["is_auto_renewable"]) == (True, False)
    for moment in ("12:00:29", "12:00:31", "12:30:00", "13:10:00"):
        buyer = await move_to(shop, buyer, f"2027-04-15T{moment}Z")
        [pro] = (await read(shop, buyer, name))["assets"]
        assert pro["valid_seconds"] > 0, moment
    assert (pro["origin"], pro["expire_time"]) == ("renewal", LATER)


async def test_a_subscription_that_ends_later_can_be_cancelled_at_the_end_of_its_period(
    shop: Shop, buyer: Buyer
) -> None:
    buyer, name = await begun(shop, buyer)
    await end_at(shop, name, LATER)
    await cancelled(shop, buyer, name)
    buyer = await move_to(shop, buyer, "2027-04-15T12:30:00Z")
    answer = await read(shop, buyer, name)
    assert (answer["cardpay_sub"]["status"], answer["assets"][0]["valid_seconds"]) == ("canceled", 0)


@pytest.mark.parametrize("how", ["period", "date", "now"])
async def test_the_time_of_a_cancellation_is_the_platforms(shop: Shop, buyer: Buyer, how: str) -> None:
    buyer, name = await begun(shop, buyer)
    buyer = await move_to(shop, buyer, "2027-03-20T09:00:00Z")
    if how == "period":
        await shop.platform(f"subscriptions/{name}", cancel_at_period_end="true")
    elif how == "date":
        await end_at(shop, name, IN_PERIOD)
    else:
        url = f"{shop.sandbox.url}/stripe/v1/subscriptions/{name}"
        async with shop.server.http.delete(url, headers={"Authorization": "Bearer sandbox"}) as response:
            assert response.status == 200
    buyer = await move_to(shop, buyer, "2027-03-21T18:00:00Z")
    answer = await read(shop, buyer, name)
    sub, [pro] = answer["cardpay_sub"], answer["assets"]
    assert abs(sub["canceled_ts"] - from_rfc3339("2027-03-20T09:00:00Z").timestamp()) < 60
    assert from_rfc3339(pro["sub_canceled_time"]).timestamp() == pro["sub_canceled_ts"] == sub["canceled_ts"]
    assert [difference async for difference in find_differences(shop.server.services.database)] == []
