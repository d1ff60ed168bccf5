"""A webhook that gets the events of the module's server."""

from collections.abc import AsyncIterator

import pytest

from tests.app.events.sinks import OK, Sinks
from tests.running.servers import Server
from tests.vendors.http.upstream import running_upstream


@pytest.fixture
async def sinks(shared_server: Server) -> AsyncIterator[Sinks]:
    async with running_upstream() as webhook:
        webhook.respond_with(OK)
        yield Sinks(shared_server, webhook)
