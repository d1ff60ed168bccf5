"""Fixtures of modules that share one server whose platforms the sandbox emulates: `module_server` and `server`."""

from collections.abc import AsyncIterator

import pytest

from tests.app.accounts.platforms import with_sandbox
from tests.running.servers import Databases, Server

__all__ = ["module_server", "server", "testbed"]


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with with_sandbox(databases, tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture(scope="module")
def module_server(testbed: Server) -> Server:
    return testbed


@pytest.fixture
def server(guest: Server) -> Server:
    return guest
