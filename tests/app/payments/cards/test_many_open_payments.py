"""The reconciliation reads everything that is due, within the limits of each config."""

import asyncio

from storage.jobs.jobs import enqueue
from storage.payments.cards.reconciliation import ReconcileCards
from tests.app.callers import working
from tests.app.payments.cards.shop import Buyer, Shop
from tests.waiting import until
from vendors.sandbox.faults import key_of

MANY, SOME = 250, 20


async def bought(shop: Shop, buyer: Buyer, *, count: int, config: str = "Default") -> list[str]:
    """Payments that were paid, of which no webhook has told the server."""

    async def one() -> str:
        intent = await shop.created(buyer, product_id="coins_100", pay_platform_config_name=config)
        await shop.pay(intent["id"])
        name: str = intent["id"]
        return name

    return [*await asyncio.gather(*(one() for _ in range(count)))]


async def reconcile(shop: Shop) -> None:
    """Let time pass for the app, and store the job that reads back what is due. No job reads the events."""
    await shop.server.services.clock.move("default", offset_s=180)
    async with shop.server.services.database.connection() as conn:
        await enqueue(conn, ReconcileCards())


async def count_granted(shop: Shop, intents: list[str]) -> int:
    statement = "select count(*) from asset_entries where key = any($1)"
    async with shop.server.services.database.connection() as conn:
        count: int = await conn.fetchval(statement, [f"card:{intent}" for intent in intents])
    return count


async def test_hundreds_of_payments_are_read_by_one_job(shop: Shop, buyer: Buyer) -> None:
    # A fast machine sells more of them in 2 s than a caller may by default.
    await shop.put("limits", "default", {"rates": {"server": {"count": 10 * MANY, "per_s": 2}}})
    intents = await bought(shop, buyer, count=MANY)
    # A call more would be refused.
    await shop.configure(concurrency=2, waiting=0)
    await reconcile(shop)

    async def all_granted() -> bool:
        return await count_granted(shop, intents) == MANY

    async with working(shop.server.services):
        await until(all_granted)
    async with shop.server.services.database.connection() as conn:
        left = "select count(*) from procrastinate_jobs where task_name like 'reconcile_card%' and status = 'todo'"
        assert await conn.fetchval(left) == 0


async def test_a_slow_platform_does_not_delay_another(shop: Shop, buyer: Buyer) -> None:
    await shop.configure("Slow")
    slow = await bought(shop, buyer, count=SOME, config="Slow")
    fast = await bought(shop, buyer, count=SOME)
    await shop.configure("Slow", secret_key=key_of(name=buyer.uid, delay_ms=300), concurrency=1)
    await reconcile(shop)

    async def granted() -> bool:
        return await count_granted(shop, fast) == SOME

    async with working(shop.server.services):
        await until(granted, within_s=30)
        assert await count_granted(shop, slow) < SOME
        await shop.configure("Slow")
