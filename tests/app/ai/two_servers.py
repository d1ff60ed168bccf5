"""A second server on the same stores, like another process of the deployment."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from app.services import open_services
from app.settings import Settings
from storage.kinds.conversation import CONVERSATION
from tests.app.ai.conftest import Talk
from tests.servers import Server, listening_socket, running_server
from tests.waiting import until


@asynccontextmanager
async def another_server(settings: Settings) -> AsyncIterator[Server]:
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(listening_socket())
        port = listener.getsockname()[1]
        own = replace(settings, port=port, public_url=f"http://127.0.0.1:{port}")
        services = await stack.enter_async_context(open_services(own))
        yield await stack.enter_async_context(running_server(services, listener))


def at(server: Server, talk: Talk) -> Talk:
    """Return the same user on another server."""
    return Talk(server, talk.uid, talk.token, talk.conversation_id)


async def knows(server: Server, strategy: str) -> None:
    """Wait until the other server knows a new strategy."""
    await until(lambda: server.services.configs.exists(CONVERSATION, "default", strategy))
