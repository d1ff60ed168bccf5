"""A user on several servers of the same stores."""

from storage.configs.kinds.conversation import CONVERSATION
from tests.app.ai.conftest import Talk
from tests.running.servers import Server
from tests.waiting import until


def at(server: Server, talk: Talk) -> Talk:
    """Return the same user on another server."""
    return Talk(server, talk.uid, talk.token, talk.conversation_id)


async def knows(server: Server, strategy: str) -> None:
    """Wait until the other server knows a new strategy."""
    await until(lambda: server.services.configs.exists(CONVERSATION, "default", strategy))
