"""A second server on the same stores, like another process of the deployment."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from app.services import open_services
from app.settings import Settings
from tests.running.servers import Server, listening_socket, running_server


@asynccontextmanager
async def another_server(settings: Settings, **more: Any) -> AsyncIterator[Server]:
    """Run a server. `more`: fields of its settings that differ from `settings`."""
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(listening_socket())
        port = listener.getsockname()[1]
        own = replace(settings, port=port, public_url=f"http://127.0.0.1:{port}", **more)
        services = await stack.enter_async_context(open_services(own))
        yield await stack.enter_async_context(running_server(services, listener))
