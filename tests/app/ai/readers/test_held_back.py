"""A durable stream that another process may continue sends nothing that is not copied."""

from actors.runtime.context import Owner
from streams.held_back import HeldBack
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.dying import ask, check_told_once, story
from tests.app.ai.readers.resumed import text_of
from tests.app.valkey_proxy import ValkeyProxy, settings, valkey_proxy  # noqa: F401 - fixtures
from tests.peers.sse_client import SeenEvent, events
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.server import Running


async def test_events_wait_for_their_copy_if_the_process_may_seem_dead(
    talk: Talk,
    sandbox: Running,
    server: Server,
    valkey_proxy: ValkeyProxy,  # noqa: F811
) -> None:
    await story(server, sandbox, times=0, pace_ms=50)
    async with ask(talk) as response:
        stream_id, seen = response.headers["X-Service-Stream-Id"], list[SeenEvent]()
        following = events(response)
        async for event in following:
            seen.append(event)
            if text_of(seen):
                break
        actor = server.services.supervisor.find(stream_id, Owner("default", talk.uid))
        assert actor is not None
        written = actor.ctx.writer
        assert isinstance(written, HeldBack)
        await valkey_proxy.stop()
        server.services.heartbeat._void_after_s = 0  # As if its reports had reached no store for long.
        sent = actor.log.last_id
        await until(lambda: written.last_id > sent + 5)
        assert actor.log.last_id <= sent + 1  # A copy may have been on its way.
        await valkey_proxy.start()
        seen += [event async for event in following]
    check_told_once(seen)
