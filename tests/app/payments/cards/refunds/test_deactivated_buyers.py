"""Nobody pays for a closed account: subscriptions are cancelled, and payments refunded."""

import pytest

from app.payments.cards.grants import sync_intent
from app.payments.cards.platform import card_platform
from storage.payments.endings import EndSubscriptions
from tests.app.callers import work_off, working
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.sold import entries
from tests.app.payments.cards.subscribers import cancelled, subscribe, subscribed
from tests.waiting import until
from vendors.sandbox.faults import key_of


async def deactivate(shop: Shop, buyer: Buyer) -> None:
    for step in ("", "/confirm"):
        assert (await shop.client_call(buyer, "POST", f"/bp/user/me/deactivate{step}"))[0] == 200


async def has_status(shop: Shop, name: str, status: str) -> bool:
    found = await shop.listed("subscriptions", status="all")
    return {sub["status"] for sub in found if sub["id"] == name} == {status}


async def is_refunded(shop: Shop, intent: str) -> bool:
    return [refund["amount"] for refund in await shop.listed("refunds", payment_intent=intent)] != []


async def refund_states(shop: Shop, intent: str) -> list[tuple[str, str]]:
    async with shop.server.services.database.connection() as conn:
        rows = await conn.fetch("select state, problem from card_refunds where intent_id = $1", intent)
    return [tuple(row) for row in rows]


async def paid_too_late(shop: Shop, buyer: Buyer, product_id: str | None = None) -> str:
    """Pay after the account was closed, and return the payment."""
    intent: str = (await shop.created(buyer, product_id=product_id))["id"]
    await deactivate(shop, buyer)
    await shop.send_webhooks()
    await shop.pay(intent)
    return intent


async def work(shop: Shop) -> None:
    """Work on the webhooks that are under way, and on those that follow from them."""
    for _ in range(2):
        await until(lambda: shop.sandbox.sandbox.deliveries.is_idle)
        await work_off(shop.server.services)


@pytest.mark.parametrize("product_id", ["coins_100", None])
async def test_a_payment_that_arrives_after_the_account_was_closed_is_refunded_once(
    shop: Shop, buyer: Buyer, product_id: str | None
) -> None:
    intent = await paid_too_late(shop, buyer, product_id)
    await work(shop)
    assert await refund_states(shop, intent) == [("made", "")]
    [refund] = await shop.listed("refunds", payment_intent=intent)
    assert (refund["amount"], "refund_row_id" in refund["metadata"]) == (199, True)
    kinds = [kind for kind, _ in await entries(shop, buyer)]
    assert kinds == ([] if product_id is None else ["grant", "refund"])


@pytest.mark.parametrize("amount", [None, "198"])
async def test_what_was_refunded_by_hand_is_not_refunded_again(
    shop: Shop, buyer: Buyer, amount: str | None
) -> None:
    intent = await paid_too_late(shop, buyer)
    await shop.platform("refunds", payment_intent=intent, **({} if amount is None else {"amount": amount}))
    await work(shop)
    assert await refund_states(shop, intent) == [("made", "")]
    assert sum(refund["amount"] for refund in await shop.listed("refunds", payment_intent=intent)) == 199


async def test_a_refund_that_the_platform_refuses_is_left_to_operators(shop: Shop, buyer: Buyer) -> None:
    intent = await paid_too_late(shop, buyer)
    await until(lambda: shop.sandbox.sandbox.deliveries.is_idle)
    await sync_intent(card_platform(shop.server.services, "default", "Default"), intent, channel="webhook")
    await shop.configure(secret_key=key_of(fault="out_of_quota"))
    await work(shop)
    assert await refund_states(shop, intent) == [("failed", "more_permissions_required")]
    async with shop.server.services.database.connection() as conn:
        found = await conn.fetch("select kind, subject from payment_mismatches")
    assert [tuple(row) for row in found] == [("refund_refused", intent)]


async def test_a_subscription_that_waits_for_its_payment_is_cancelled(shop: Shop, buyer: Buyer) -> None:
    _, answer = await subscribe(shop, buyer)
    await deactivate(shop, buyer)
    async with working(shop.server.services):
        await until(lambda: has_status(shop, answer["cardpay_sub"]["id"], "canceled"))


async def test_a_subscription_that_is_paid_during_the_deactivation_is_cancelled(shop: Shop, buyer: Buyer) -> None:
    _, answer = await subscribe(shop, buyer)
    await deactivate(shop, buyer)
    async with shop.server.services.database.connection() as conn:
        await conn.execute("delete from procrastinate_jobs")
    await shop.send_webhooks()
    intent = answer["cardpay_sub"]["latest_payment_intent"]["id"]
    await shop.pay(intent)
    async with working(shop.server.services):
        await until(lambda: has_status(shop, answer["cardpay_sub"]["id"], "canceled"))
        await until(lambda: is_refunded(shop, intent))


async def test_a_subscription_that_is_resumed_during_the_freeze_is_cancelled(shop: Shop, buyer: Buyer) -> None:
    name = (await subscribed(shop, buyer))["cardpay_sub"]["id"]
    await cancelled(shop, buyer, name)
    assert (await shop.client_call(buyer, "POST", "/bp/user/me/deactivate"))[0] == 200
    await shop.platform(f"subscriptions/{name}", cancel_at_period_end="false")
    assert (await shop.client_call(buyer, "POST", "/bp/user/me/deactivate/confirm"))[0] == 200
    async with working(shop.server.services):
        await until(lambda: has_status(shop, name, "canceled"))


async def test_a_subscription_that_does_not_renew_ends_by_itself(shop: Shop, buyer: Buyer) -> None:
    name = (await subscribed(shop, buyer))["cardpay_sub"]["id"]
    await cancelled(shop, buyer, name)
    await deactivate(shop, buyer)

    async def jobs() -> int:
        async with shop.server.services.database.connection() as conn:
            statement = "select count(*) from procrastinate_jobs where task_name = $1"
            count: int = await conn.fetchval(statement, EndSubscriptions.task)
            return count

    async def all_done() -> bool:
        return not await jobs()

    assert await jobs() == 1
    async with working(shop.server.services):
        await until(all_done)
    assert await has_status(shop, name, "active")
