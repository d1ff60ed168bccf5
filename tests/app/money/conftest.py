"""The till of the tests of money."""

from collections.abc import AsyncIterator

import pytest

from tests.app.money.till import Till, open_till
from tests.running.servers import Databases


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Till]:
    async with open_till(databases, tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture
async def till(testbed: Till) -> Till:
    return testbed
