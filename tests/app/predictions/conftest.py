"""Fixtures: a server whose strategy `faces` calls the sandbox's model host."""

from collections.abc import AsyncIterator

import pytest

from tests.app.callers import move_to_noon
from tests.app.predictions.hosts import Studio
from tests.running.servers import Server
from vendors.sandbox.server import listening


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
async def studio(server: Server) -> AsyncIterator[Studio]:
    """A user with the quota of two free predictions a day, of which it is noon."""
    await move_to_noon(server)
    async with listening() as sandbox:
        opened = Studio(server, sandbox, *(await server.login()))
        await opened.set_up()
        yield opened
