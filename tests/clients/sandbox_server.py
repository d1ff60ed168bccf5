"""Fixtures of modules whose server has the sandbox as all of its platforms, and as its inbox: `module_server`."""

from collections.abc import AsyncIterator

import pytest

from tests.running.servers import Databases, Server, new_server
from vendors.sandbox.server import listening

__all__ = ["module_server", "testbed"]


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    folder = tmp_path_factory.mktemp("data")
    async with (
        listening() as sandbox,
        new_server(databases, folder, sandbox_url=sandbox.url, inbox_url=sandbox.inbox_url) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def module_server(testbed: Server) -> Server:
    return testbed
