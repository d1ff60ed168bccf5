"""A durable stream whose process is killed in the middle of an answer: another process continues it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import ClientResponse

from app.settings import Settings
from storage.conversations import attempts
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import resume, text_of
from tests.app.ai.readers.two_servers import at, knows
from tests.app.ai.sandbox_accounts import chat
from tests.deploy.commands import Command
from tests.deploy.serving import serving, two_free_ports
from tests.peers.sse_client import SeenEvent, all_events, events
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

STORY = "Once upon a time there was a king.\n\nHe had a dog, and the dog had a bone."
SAID = "Once upon a time"
KEY = {"Idempotency-Key": "tell-it-once"}
STALLS = {"text": STORY, "fault": "stall_mid_stream", "position": 4, "times": 1}
"""The first call stops in the middle of the answer. Later ones say what is left of it."""


@dataclass
class Dying:
    """A process of the deployment, and the user at it."""

    process: Command
    talk: Talk

    async def kill(self) -> None:
        self.process.process.send_signal(signal.SIGKILL)
        await self.process.end()


@asynccontextmanager
async def another_process(talk: Talk, settings: Settings) -> AsyncIterator[Dying]:
    port = two_free_ports()
    async with serving(replace(settings, port=port), PARLEY_PROCESSES="1") as process:
        await process.event("server.listening")
        yield Dying(process, replace(talk, server=replace(talk.server, url=f"http://127.0.0.1:{port}")))


@pytest.fixture
async def dying(talk: Talk, settings: Settings) -> AsyncIterator[Dying]:
    async with another_process(talk, settings) as process:
        yield process


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
    assert seen[-1].content["digest"]["chars"] == len(text_of(seen))


async def test_another_process_continues_the_answer_of_a_killed_one(
    talk: Talk, sandbox: Running, server: Server, other: Server, *, dying: Dying
) -> None:
    await chat(server, sandbox, "story", "anthropic", key_of(**STALLS), durable=True, on_break="continue")
    await knows(other, "story")
    async with dying.talk.say("A story", "story") as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        talk.remember(response)
        seen = await begun(response)
        await dying.kill()
    last = seen[-1].id
    rest, same = await asyncio.gather(*(read(resume(asker, stream_id, last)) for asker in (talk, at(other, talk))))
    assert rest == same
    check_told_once(seen + rest)
    assert len(list(sandbox.bill.since(0))) == 2
    end = rest[-1].content
    assert [failed["strategy"] for failed in end["attempts"]] == ["story"]
    [record] = (await talk.history())["conversation_records"]
    assert (record["status"], record["record_id"]) == ("complete", end["record_id"])
    assert [item["text"] for item in record["content"][1]["content"]] == STORY.split("\n\n")
    async with server.services.database.connection() as conn:
        stored = await attempts.of_stream(conn, "default", stream_id=stream_id)
    assert stored is not None
    outcomes = [(attempt["outcome"], attempt["usage_source"]) for attempt in stored.attempts]
    assert outcomes == [("failed", "estimated"), ("won", "vendor")]
    assert all(attempt["output_unit"] > 0 for attempt in stored.attempts)


async def read(request: Any) -> list[SeenEvent]:
    async with request as response:
        return await all_events(response)
