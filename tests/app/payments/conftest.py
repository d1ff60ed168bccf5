"""The wallet platform of the tests of payments, and a user who pays there."""

from collections.abc import AsyncIterator

import pytest

from tests.app.payments.wallet.wallets import Wallet, wallet_at
from tests.running.servers import Server
from vendors.sandbox.server import Running, listening


@pytest.fixture
async def platform() -> AsyncIterator[Running]:
    async with listening() as sandbox:
        yield sandbox


@pytest.fixture
async def wallet(shared_server: Server, platform: Running) -> AsyncIterator[Wallet]:
    async with wallet_at(shared_server, platform) as opened:
        yield opened
