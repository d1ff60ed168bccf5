"""A share of the webhooks is lost. Every grant arrives nevertheless, without any request of a client."""

from datetime import timedelta

from streams.wire.codec import rfc3339
from tests.app.callers import ask, work_off, working
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import subscribed
from tests.calendar.clock import utc_now
from tests.waiting import until

PAYMENTS = 20
MONTHS = 3


async def granted(shop: Shop, buyer: Buyer, *, channel: str | None = None) -> list[str]:
    """The payments and invoices that have granted something, also those that only one channel has reported."""
    query = """
        select receipt_id from asset_entries
        where uid = $1 and kind = 'grant' and channel <> 'client' and ($2::text is null or channel = $2) order by 1
    """
    async with shop.server.services.database.connection() as conn:
        return [row["receipt_id"] for row in await conn.fetch(query, buyer.uid, channel)]


async def move(shop: Shop, **by: float) -> None:
    """Let time pass for the app and its platform. The jobs at fixed times become due."""
    ahead = timedelta(seconds=shop.server.services.clock.offset_s("default")) + timedelta(**by)
    body = {"app": "default", "at": rfc3339(utc_now() + ahead)}
    assert (await ask(shop.server, "POST", "/dev/clock", json=body))[0] == 200


async def test_every_grant_arrives_although_webhooks_are_lost(shop: Shop, buyer: Buyer) -> None:
    await shop.send_webhooks()
    await shop.control("webhooks", fault="lost", rate=0.5, seed=1)
    paid = [(await shop.created(buyer, product_id="coins_100"))["id"] for _ in range(PAYMENTS)]
    for intent in paid:
        await shop.pay(intent)
    customer = (await subscribed(shop, buyer))["cardpay_sub"]["customer_id"]
    await until(lambda: shop.sandbox.sandbox.deliveries.is_idle)
    await work_off(shop.server.services)
    assert 0 < len(await granted(shop, buyer)) < PAYMENTS

    async with working(shop.server.services):
        await move(shop, minutes=15)
        await until(lambda: _has_granted(shop, buyer, paid))
        for _ in range(MONTHS):
            await move(shop, days=31)
        invoices = await shop.listed("invoices", customer=customer, status="paid", limit="100")
        renewals = [invoice["id"] for invoice in invoices if invoice["billing_reason"] == "subscription_cycle"]
        assert len(renewals) == MONTHS
        await move(shop, minutes=15)
        await until(lambda: _has_granted(shop, buyer, [*paid, *renewals]))
    assert await granted(shop, buyer, channel="reconciliation")


async def _has_granted(shop: Shop, buyer: Buyer, receipts: list[str]) -> bool:
    return await granted(shop, buyer) == sorted(receipts)
