"""A payer of the module's server."""

from collections.abc import AsyncIterator

import pytest

from tests.app.callers import move_to_noon
from tests.app.withdrawals.payer import Payer
from tests.running.servers import Databases, Server, new_server
from vendors.sandbox.server import listening


@pytest.fixture(scope="module")
async def testbed(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Server, str]]:
    data_dir = tmp_path_factory.mktemp("data")
    async with listening() as sandbox, new_server(databases, data_dir, sandbox_url=sandbox.url) as server:
        yield server, sandbox.url


@pytest.fixture
async def payer(testbed: tuple[Server, str]) -> Payer:
    made = Payer(*testbed)
    await made.configure()
    return made


@pytest.fixture
async def payer_at_noon(payer: Payer) -> AsyncIterator[Payer]:
    """For tests of limits, which are of a day."""
    await move_to_noon(payer.server)
    yield payer
    await payer.server.services.clock.move("default", offset_s=0)
