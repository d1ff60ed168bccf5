"""A stream whose process is killed: with `durable`, another process has everything that was said."""

import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from aiohttp import ClientResponse

from app.settings import Settings
from storage.conversations.detached_logs import DetachedLog
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import resume, text_of
from tests.deploy.serving import serving
from tests.peers.sse_client import SeenEvent, all_events, events
from tests.running.ports import free_ports
from tests.running.servers import Server
from tests.waiting import until

SAID = "Once upon a time there was a king"


async def heard(response: ClientResponse) -> list[SeenEvent]:
    """Read until everything was said. The vendor then waits."""
    seen: list[SeenEvent] = []
    async for event in events(response):
        seen.append(event)
        if text_of(seen) == SAID:
            break
    return seen


@pytest.mark.parametrize("durable", [True, False])
async def test_what_a_killed_process_has_said_can_be_read_elsewhere_if_its_strategy_is_durable(
    talk: Talk, strategy: Callable[..., Awaitable[None]], settings: Settings, server: Server, *, durable: bool
) -> None:
    await strategy("slow", f"slow:{SAID}", durable=durable)
    port = free_ports(2)[0]
    async with AsyncExitStack() as stack:
        dying = await stack.enter_async_context(serving(replace(settings, port=port), PARLEY_PROCESSES="1"))
        await dying.event("server.listening")
        there = Talk(replace(server, url=f"http://127.0.0.1:{port}"), talk.uid, talk.token)
        response = await stack.enter_async_context(there.say("a story", "slow"))
        stream_id = response.headers["X-Service-Stream-Id"]
        seen = await heard(response)
        copy = DetachedLog(server.services.valkey, app_id="default", user_id=talk.uid, stream_id=stream_id)

        async def is_copied() -> bool:
            span = await copy.span()
            return span is not None and span[1] >= (seen[-1].id or 0)

        if durable:
            await until(is_copied)
        else:
            assert await copy.span() is None
        dying.process.send_signal(signal.SIGKILL)
        again = await stack.enter_async_context(resume(talk, stream_id, seen[1].id))
        rest = await all_events(again)
    assert rest[-1].name == "error"
    assert rest[-1].content["error"]["message"].endswith("the process that ran the stream has ended")
    assert [event.content for event in rest[:-1]] == ([event.content for event in seen[2:]] if durable else [])
