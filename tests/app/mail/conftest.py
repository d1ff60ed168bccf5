"""A server with the local inbox, for each module."""

from collections.abc import AsyncIterator

import pytest

from tests.app.mail.hub import Hub, open_hub


@pytest.fixture(scope="module")
async def testbed(databases, tmp_path_factory) -> AsyncIterator[Hub]:
    async with open_hub(databases, tmp_path_factory.mktemp("data")) as hub:
        yield hub


@pytest.fixture
async def hub(testbed: Hub) -> AsyncIterator[Hub]:
    """The server of the module, with a strategy `news`. What a test has left is deleted."""
    await testbed.limit()
    await testbed.strategy()
    yield testbed
    await testbed.execute("delete from procrastinate_jobs")
    await testbed.execute("delete from suppressions")
