"""What the shop has sold to a buyer, as its webhooks have reported it."""

from tests.app.payments.cards.shop import Buyer, Shop
from tests.waiting import until


async def entries(shop: Shop, buyer: Buyer) -> list[tuple[str, str]]:
    async with shop.server.services.database.connection() as conn:
        rows = await conn.fetch("select kind, key from asset_entries where uid = $1 order by entry_id", buyer.uid)
    return [(row["kind"], row["key"]) for row in rows]


async def worked(shop: Shop) -> bool:
    """Whether the job has worked on all webhooks."""
    async with shop.server.services.database.connection() as conn:
        left: int = await conn.fetchval("select count(*) from webhooks where status <> 'done'")
    return left == 0


async def has_coins(shop: Shop, buyer: Buyer, count: int) -> None:
    async def equal() -> bool:
        return await shop.coins(buyer) == count

    await until(equal)


async def paid(shop: Shop, buyer: Buyer, *, card: str = "pm_card_visa") -> str:
    """Buy coins, and wait until a webhook has granted them."""
    intent: str = (await shop.created(buyer, product_id="coins_100"))["id"]
    await shop.pay(intent, card=card)
    return intent
