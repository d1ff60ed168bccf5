"""The sandbox of `make run` calls the webhooks of its server."""

from deploy.sandbox import send_webhooks
from tests.app.payments.cards.shop import Shop
from tests.servers import Databases, new_server
from tests.waiting import until
from vendors.sandbox.server import listening


async def test_events_of_the_card_platform_reach_the_server(databases: Databases, tmp_path) -> None:
    async with listening() as sandbox, new_server(databases, tmp_path, sandbox_url=sandbox.url) as server:
        await send_webhooks(sandbox.url, server.url)
        shop = Shop(server, sandbox)
        buyer = await shop.buyer()
        await shop.created(buyer)
        async with server.services.database.connection() as conn:
            await until(lambda: conn.fetchval("select count(*) from webhooks where source = 'cardpay'"))
