"""A shop of the module. After each test, no number of a card may be stored."""

from collections.abc import AsyncIterator

import pytest

from tests import card_numbers
from tests.app.callers import working
from tests.app.payments.cards.shop import Buyer, Shop, open_shop
from tests.running.servers import Databases


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    async with open_shop(databases, tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture
async def shop(testbed: Shop) -> AsyncIterator[Shop]:
    """The shop of the module, with the configs of development servers."""
    yield testbed
    async with testbed.server.services.database.connection() as conn:
        found = await card_numbers.tables_with(conn, card_numbers.SENT)
    await testbed.configure()
    await testbed.stop_webhooks()
    await testbed.sandbox.reset()
    await testbed.reset_clocks()
    async with testbed.server.services.database.connection() as conn:
        await conn.execute("delete from procrastinate_jobs")  # Those in the future hold keys.
        await conn.execute("delete from webhooks")
        await conn.execute("delete from payment_mismatches")
    assert not found, f"numbers of cards are stored in {found}"


@pytest.fixture
async def selling(shop: Shop) -> AsyncIterator[Shop]:
    """A shop that gets webhooks and works on them."""
    await shop.send_webhooks()
    async with working(shop.server.services):
        yield shop
        await shop.stop_webhooks()


@pytest.fixture
async def buyer(shop: Shop) -> Buyer:
    return await shop.buyer()
