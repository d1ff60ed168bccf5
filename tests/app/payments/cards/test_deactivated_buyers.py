"""Nobody pays for the subscription of a deactivated user."""

from storage.payments.endings import EndSubscriptions
from tests.app.callers import working
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import cancelled, subscribe, subscribed
from tests.waiting import until


async def deactivate(shop: Shop, buyer: Buyer) -> None:
    for step in ("", "/confirm"):
        assert (await shop.client_call(buyer, "POST", f"/bp/user/me/deactivate{step}"))[0] == 200


async def has_status(shop: Shop, name: str, status: str) -> bool:
    found = await shop.listed("subscriptions", status="all")
    return {sub["status"] for sub in found if sub["id"] == name} == {status}


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
    await shop.pay(answer["cardpay_sub"]["latest_payment_intent"]["id"])
    async with working(shop.server.services):
        await until(lambda: has_status(shop, answer["cardpay_sub"]["id"], "canceled"))


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
