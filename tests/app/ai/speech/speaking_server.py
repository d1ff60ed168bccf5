"""Fixtures of modules that share one server with the local engines: `module_server` and `server`."""

from collections.abc import AsyncIterator

import pytest

from tests.running.servers import Databases, Server, new_server

__all__ = ["module_server", "server"]


@pytest.fixture(scope="module")
async def module_server(
    databases: Databases, local_vendors: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Server]:
    async with new_server(databases, tmp_path_factory.mktemp("data"), local_url=local_vendors) as running:
        yield running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server
