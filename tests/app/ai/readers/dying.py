"""A story that a durable stream tells, whose process is killed in the middle of it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from aiohttp import ClientResponse

from app.settings import Settings
from streams.tasks import pause, stopping
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import text_of
from tests.app.ai.sandbox_accounts import chat
from tests.deploy.commands import Command
from tests.deploy.serving import serving
from tests.peers.sse_client import SeenEvent, all_events, events
from tests.running.ports import free_ports
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

STORY = "Once upon a time there was a king.\n\nHe had a dog, and the dog had a bone."
SAID = "Once upon a time"
KEY = {"Idempotency-Key": "tell-it-once"}
STALLS = {"text": STORY, "fault": "stall_mid_stream", "position": 4, "times": 1, "pace_ms": 0}
"""The first call stops in the middle of the answer. Later ones say what is left of it."""


@dataclass
class Dying:
    """A process of the deployment, and the user at it."""

    process: Command
    talk: Talk

    async def kill(self) -> None:
        self.process.process.send_signal(signal.SIGKILL)
        await self.process.end()

    async def knows_story(self) -> None:
        """Wait until the process has read the new strategy."""
        await until(self._knows_story)

    async def _knows_story(self) -> bool:
        # A request without input calls no vendor, and nothing of it is stored.
        params = self.talk.params("story", conversation_id="")
        async with self.talk.post("/bp/ai/conversation", data=params) as response:
            await response.read()
            return response.status == 200


@asynccontextmanager
async def another_process(talk: Talk, settings: Settings) -> AsyncIterator[Dying]:
    port = free_ports(2)[0]
    async with serving(replace(settings, port=port), PARLEY_PROCESSES="1") as process:
        await process.event("server.listening")
        yield Dying(process, replace(talk, server=replace(talk.server, url=f"http://127.0.0.1:{port}")))


async def begun(response: ClientResponse) -> list[SeenEvent]:
    """Read the events until the vendor has stopped, and leave the response unread."""
    seen: list[SeenEvent] = []
    async for event in events(response):
        seen.append(event)
        if text_of(seen).rstrip() == SAID:
            return seen
    raise AssertionError(seen)


def check_told_once(seen: list[SeenEvent]) -> None:
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].name == "end", seen[-1]
    assert text_of(seen) == STORY.replace("\n\n", "")
    text = text_of(seen)
    assert seen[-1].content["digest"] == {"chars": len(text), "sha256": sha256(text.encode()).hexdigest()}


async def story(server: Server, sandbox: Running, **fields: Any) -> None:
    """Create the strategy, whose fields may differ from one that another process can continue."""
    value = {"durable": True, "on_break": "continue", "platform": "anthropic", **STALLS, **fields}
    key = key_of(**{name: value.pop(name) for name in STALLS})
    await chat(server, sandbox, "story", value.pop("platform"), key, **value)


async def told_by_killed(dying: Dying, talk: Talk, **options: Any) -> tuple[str, list[SeenEvent]]:
    """Return the stream and the events of an answer that breaks off because its process is killed."""
    await dying.knows_story()
    async with ask(dying.talk, **options) as response:
        talk.remember(response)
        seen = await begun(response)
        await dying.kill()
        return response.headers["X-Service-Stream-Id"], seen


def ask(talk: Talk, **options: Any) -> Any:
    return talk.post("/bp/ai/conversation", data=talk.params("story", conversation_id="") + b"A story", **options)


async def dead(server: Server, talk: Talk, stream_id: str) -> None:
    """Wait until the process of a stream counts as dead. This takes half a second instead of 30."""
    services = server.services
    services.heartbeat._void_after_s = 0.5
    location = await services.admissions.find("default", talk.uid, stream_id)
    assert location is not None
    await until(lambda: services.heartbeat.dead([location.process]))


async def keep_alive(*servers: Server) -> None:
    """Beat often, so that the servers themselves do not count as dead after half a second."""
    while not stopping():
        await asyncio.gather(*(server.services.heartbeat.beat() for server in servers))
        await pause(0.05)


async def read(request: Any) -> list[SeenEvent]:
    async with request as response:
        return await all_events(response)
