"""The platforms of the tests of payments, and users who pay there."""

from collections.abc import AsyncIterator

import pytest

from tests.app.payments.shop import Buyer, Shop, open_shop
from tests.app.payments.wallets import Wallet, wallet_at
from tests.servers import Databases, Server
from vendors.sandbox.server import Running, listening


@pytest.fixture
async def platform() -> AsyncIterator[Running]:
    async with listening() as sandbox:
        yield sandbox


@pytest.fixture
async def wallet(shared_server: Server, platform: Running) -> AsyncIterator[Wallet]:
    async with wallet_at(shared_server, platform) as opened:
        yield opened


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    async with open_shop(databases, tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture
async def shop(testbed: Shop) -> AsyncIterator[Shop]:
    """The shop of the module, with the configs of development servers."""
    yield testbed
    await testbed.configure()
    await testbed.sandbox.reset()
    await testbed.server.services.clock.move("default", offset_s=0)


@pytest.fixture
async def buyer(shop: Shop) -> Buyer:
    return await shop.buyer()
