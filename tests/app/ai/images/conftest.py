"""The sandbox as an image host, on the module's server."""

from collections.abc import AsyncIterator

import pytest

from tests.app.ai.images.studio import Studio
from tests.app.callers import move_to_noon, working
from tests.running.servers import Server
from vendors.sandbox.server import listening


@pytest.fixture
async def studio(shared_server: Server) -> AsyncIterator[Studio]:
    """With a worker. It is noon, because free units are of a day."""
    await move_to_noon(shared_server)
    async with listening() as sandbox, working(shared_server.services):
        opened = Studio(shared_server, sandbox)
        await opened.configure()
        yield opened


@pytest.fixture
async def idle_studio(shared_server: Server) -> AsyncIterator[Studio]:
    """Without a worker, at noon."""
    await move_to_noon(shared_server)
    async with listening() as sandbox:
        opened = Studio(shared_server, sandbox)
        await opened.configure()
        yield opened
