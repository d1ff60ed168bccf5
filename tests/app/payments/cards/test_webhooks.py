"""Webhooks of the card platform: verified, worked on by a job, and never trusted."""

import hashlib
import hmac
from typing import Any

import pytest

from streams.wire.codec import dumps
from tests.app.callers import ask, working
from tests.app.operator_calls import call
from tests.app.payments.cards.shop import WEBHOOK, Buyer, Shop
from tests.app.payments.cards.sold import entries, has_coins, paid, worked
from tests.calendar.clock import epoch_ns, epoch_s
from tests.waiting import until

EVENT = {"id": "evt_1", "type": "payment_intent.succeeded", "created": 1, "data": {"object": {"id": "pi_1"}}}


def signature(body: bytes, *, secret: str = "whsec_sandbox", ahead_s: int = 0) -> str:
    t = int(epoch_s()) + ahead_s
    mac = hmac.new(secret.encode(), b"%d." % t + body, hashlib.sha256).hexdigest()
    return f"t={t},v1={mac}"


async def deliver(
    shop: Shop, body: bytes, *, header: str | None = None, path: str = WEBHOOK
) -> tuple[int, str | None]:
    headers = {"Stripe-Signature": signature(body) if header is None else header}
    status, answer = await ask(shop.server, "POST", path, data=body, headers=headers)
    return status, answer and answer["error"]["error_type"]


async def stored(shop: Shop) -> int:
    async with shop.server.services.database.connection() as conn:
        count: int = await conn.fetchval("select count(*) from webhooks")
        return count


async def test_a_payment_is_granted_without_any_further_request(selling: Shop, buyer: Buyer) -> None:
    intent = await paid(selling, buyer)
    await has_coins(selling, buyer, 100)
    assert await entries(selling, buyer) == [("grant", f"card:{intent}")]


@pytest.mark.parametrize("fault", ["duplicate", "delayed", "reordered"])
async def test_webhooks_may_be_duplicated_delayed_and_reordered(selling: Shop, buyer: Buyer, fault: str) -> None:
    await selling.control("webhooks", fault=fault, delay_ms=70)
    intent = await paid(selling, buyer)
    await selling.platform("refunds", payment_intent=intent)
    await has_coins(selling, buyer, 0)

    async def refunded() -> bool:
        return len(await entries(selling, buyer)) == 2

    await until(refunded)
    [grant, refund] = await entries(selling, buyer)
    assert (grant, refund[0]) == (("grant", f"card:{intent}"), "refund")


async def test_a_full_refund_takes_back_what_was_granted(selling: Shop, buyer: Buyer) -> None:
    first, _ = await paid(selling, buyer), await paid(selling, buyer)
    await has_coins(selling, buyer, 200)
    await selling.platform("refunds", payment_intent=first, amount="100")
    await selling.platform("refunds", payment_intent=first)
    await has_coins(selling, buyer, 100)
    coins = (await selling.assets(buyer))["coins"]
    assert (coins["is_refund"], coins["refund_time"] > "2020") == (True, True)


async def test_a_refund_of_a_part_changes_nothing(selling: Shop, buyer: Buyer) -> None:
    intent = await paid(selling, buyer)
    await has_coins(selling, buyer, 100)
    await selling.platform("refunds", payment_intent=intent, amount="198")

    async def known() -> bool:
        listed = await selling.listed("events", type="charge.refunded")
        async with selling.server.services.database.connection() as conn:
            found = await conn.fetchval("select status from webhooks where event_id = $1", listed[0]["id"])
        return bool(found == "done")

    await until(known)
    assert await selling.coins(buyer) == 100


async def test_a_refund_before_the_grant_is_known_enters_both(shop: Shop, buyer: Buyer) -> None:
    intent = await paid(shop, buyer)
    await shop.send_webhooks()
    await shop.platform("refunds", payment_intent=intent)
    async with working(shop.server.services):

        async def refunded() -> bool:
            return len(await entries(shop, buyer)) == 2

        await until(refunded)
        await shop.stop_webhooks()
    assert [kind for kind, _ in await entries(shop, buyer)] == ["grant", "refund"]
    assert await shop.coins(buyer) == 0


async def test_a_dispute_takes_back_until_it_is_won(selling: Shop, buyer: Buyer) -> None:
    intent = await paid(selling, buyer, card="pm_card_createDispute")

    async def disputed() -> bool:
        return len(await entries(selling, buyer)) == 2

    await until(disputed)
    assert await selling.coins(buyer) == 0
    await selling.control("dispute", payment_intent=intent, status="won")
    await has_coins(selling, buyer, 100)
    assert [kind for kind, _ in await entries(selling, buyer)] == ["grant", "refund", "restore"]
    assert (await selling.assets(buyer))["coins"]["origin"] == "restore"


async def test_a_dispute_that_is_won_gives_back_only_what_was_not_used(selling: Shop, buyer: Buyer) -> None:
    intent = await paid(selling, buyer)
    await has_coins(selling, buyer, 100)
    path, used = f"/admin/api/users/default/{buyer.uid}/assets", {"name": "coins", "quantity": -60}
    status, answer = await call(selling.server, "PATCH", path, used, reason="support", key=intent)
    assert status == 200, answer
    await selling.control("dispute", payment_intent=intent, status="needs_response")
    await has_coins(selling, buyer, 0)
    await selling.control("dispute", payment_intent=intent, status="won")
    await has_coins(selling, buyer, 40)


async def test_an_inquiry_changes_nothing_and_a_lost_dispute_stays_taken(selling: Shop, buyer: Buyer) -> None:
    intent = await paid(selling, buyer)
    await has_coins(selling, buyer, 100)
    await selling.control("dispute", payment_intent=intent, status="warning_needs_response")
    await until(lambda: worked(selling))
    assert await selling.coins(buyer) == 100
    await selling.control("dispute", payment_intent=intent, status="needs_response")
    await has_coins(selling, buyer, 0)
    await selling.control("dispute", payment_intent=intent, status="lost")
    await until(lambda: worked(selling))
    assert await selling.coins(buyer) == 0


async def test_forged_old_and_future_webhooks_are_refused(shop: Shop) -> None:
    body, before = dumps(EVENT), await stored(shop)
    headers = [
        "",
        "t=1,v1=00",
        signature(body, secret="whsec_other"),
        signature(b"another body"),
        signature(body, ahead_s=-310),
        signature(body, ahead_s=310),
    ]
    for header in headers:
        assert await deliver(shop, body, header=header) == (400, "invalid_parameter")
    assert await stored(shop) == before


async def test_each_of_several_secrets_signs(shop: Shop) -> None:
    await shop.configure(webhook_secrets=["whsec_old", "whsec_new"])
    for number, secret in enumerate(["whsec_old", "whsec_new"]):
        body = dumps({**EVENT, "id": f"evt_{number}_{epoch_ns()}"})
        assert await deliver(shop, body, header=signature(body, secret=secret)) == (200, None)
    await shop.configure(webhook_secrets=[])
    assert await deliver(shop, dumps(EVENT)) == (400, "invalid_parameter")


async def test_twins_are_stored_once(shop: Shop) -> None:
    body, before = dumps({**EVENT, "id": f"evt_{epoch_ns()}"}), await stored(shop)
    assert [await deliver(shop, body) for _ in range(2)] == [(200, None)] * 2
    assert await stored(shop) == before + 1


@pytest.mark.parametrize("change", [{"id": None}, {"id": ""}, {"type": 1}, {"data": {}}, {"created": "now"}])
async def test_malformed_events_are_refused(shop: Shop, change: dict[str, Any]) -> None:
    assert await deliver(shop, dumps({**EVENT, **change})) == (400, "invalid_parameter")
    assert await deliver(shop, b"not JSON") == (400, "invalid_parameter")


async def test_configs_and_apps_that_do_not_exist(shop: Shop) -> None:
    assert await deliver(shop, dumps(EVENT), path="/bp/webhook/cardpay/default/Other") == (404, "item_not_found")
    assert (await deliver(shop, dumps(EVENT), path="/bp/webhook/cardpay/other/Default"))[0] in {400, 404}


async def test_what_a_webhook_claims_is_not_believed(selling: Shop, buyer: Buyer) -> None:
    unpaid = (await selling.created(buyer, product_id="coins_100"))["id"]
    claimed = {"id": unpaid, "status": "succeeded", "amount": 199, "amount_received": 199}
    body = dumps({**EVENT, "id": f"evt_{epoch_ns()}", "data": {"object": claimed}})
    assert await deliver(selling, body) == (200, None)
    await until(lambda: worked(selling))
    assert await selling.coins(buyer) == 0


async def test_events_about_other_things_are_done_without_effect(selling: Shop, buyer: Buyer) -> None:
    await selling.configure("Second")
    intent = (await selling.created(buyer, product_id="coins_100", pay_platform_config_name="Second"))["id"]
    events = [
        {"type": "payment_intent.succeeded", "data": {"object": {"id": "pi_unknown"}}},
        {"type": "payment_intent.succeeded", "data": {"object": {"id": 1}}},
        {"type": "charge.refunded", "data": {"object": {"id": "ch_1", "payment_intent": None}}},
        {"type": "charge.refunded", "data": {"object": {"id": "ch_1", "payment_intent": "pi_unknown"}}},
        {"type": "account.updated", "data": {"object": {}}},
        # It belongs to another config of the app.
        {"type": "charge.refunded", "data": {"object": {"id": "ch_1", "payment_intent": intent}}},
    ]
    for number, event in enumerate(events):
        body = dumps({**EVENT, "id": f"evt_{number}_{epoch_ns()}", **event})
        assert await deliver(selling, body) == (200, None)
    await until(lambda: worked(selling))
    assert await entries(selling, buyer) == []


async def test_a_webhook_waits_until_the_platform_answers(selling: Shop, buyer: Buyer) -> None:
    intent = (await selling.created(buyer, product_id="coins_100"))["id"]
    await selling.configure(secret_key="wrong")
    await selling.pay(intent)
    async with selling.server.services.database.connection() as conn:
        failed = "select count(*) from webhooks where status = 'failed'"
        await until(lambda: conn.fetchval(failed))
        await selling.configure()
        await conn.execute("update procrastinate_jobs set scheduled_at = now() where status = 'todo'")
    await has_coins(selling, buyer, 100)
