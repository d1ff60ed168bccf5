"""Paused processes, and processes whose keys Valkey lost, keep their turns while either store has a heartbeat."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psutil
import pytest
from aiohttp import ClientSession

from app.services import Services
from app.settings import Settings
from storage.processes.heartbeats import EVERY_S, VOID_AFTER_S
from tests.app.ai.conftest import Talk, strategy, talk, vendor
from tests.deploy.serving import serving
from tests.peers.sse_client import SeenEvent, events, named
from tests.peers.vendor import Vendor
from tests.running.servers import Server, listening_socket
from tests.waiting import until

__all__ = ["strategy", "talk", "vendor"]


@dataclass
class Other:
    """Another process of the deployment, and the events of its only stream."""

    talk: Talk
    process: psutil.Process
    seen: list[SeenEvent]
    stream_id: str = ""

    async def say(self, tasks: asyncio.TaskGroup, name: str) -> asyncio.Task[None]:
        """Begin a turn in that process. Returns once the answer has begun. The task reads it to the end."""
        response = await self.talk.say("story", name)
        assert response.status == 200
        self.talk.remember(response)
        self.stream_id = response.headers["X-Service-Stream-Id"]

        async def read() -> None:
            async with response:
                async for event in events(response):
                    self.seen.append(event)

        reading = tasks.create_task(read())
        await until(lambda: "assistant_output_chunk" in [event.name for event in self.seen])
        return reading

    @property
    def text(self) -> str:
        return "".join(chunk["text"] for chunk in named(self.seen, "assistant_output_chunk"))

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@asynccontextmanager
async def another_process(settings: Settings, here: Talk) -> AsyncIterator[Other]:
    with listening_socket() as held:
        port = held.getsockname()[1]
    at = replace(settings, port=port, public_url=f"http://127.0.0.1:{port}")
    async with serving(at, PARLEY_PROCESSES="1") as command, ClientSession() as http:
        await command.event("server.listening")
        server = Server(at.public_url, here.server.services, http)
        yield Other(Talk(server, here.uid, here.token), psutil.Process(command.process.pid), [])


async def flush(services: Services) -> None:
    """Delete all keys of this deployment, like FLUSHALL."""
    prefix = services.settings.redis_prefix
    names = [name async for name in services.valkey.client.scan_iter(f"{prefix}*", count=10_000)]
    await services.valkey.client.delete(*names)


async def silence(services: Services) -> None:
    """Move the last heartbeat of all processes back by a minute, in both stores."""
    key = services.valkey.key("processes", "seen")
    now, _ = await services.valkey.client.time()
    for process in await services.valkey.client.zrange(key, 0, -1):
        await services.valkey.client.zadd(key, {process: (now - 60) * 1000})
    async with services.database.connection() as conn:
        await conn.execute("update processes set seen_at = now() - interval '1 minute'")
    services.heartbeat._void_after_s = 0.5  # The Valkey of a test has not run for long.


async def rows(services: Services, conversation_id: str) -> list[tuple[str, str]]:
    """Return the status and the answer of each record."""
    async with services.database.connection() as conn:
        found = await conn.fetch(
            "select status, coalesce(content -> 1 -> 'content' -> 0 ->> 'text', '') from conversation_records"
            " where conversation_id = $1 order by record_id",
            conversation_id,
        )
    return [tuple(row) for row in found]


async def test_turn_continues_after_valkey_lost_its_keys_and_is_not_taken_over(
    settings: Settings, server: Server, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await strategy("quick", "say:Fine")
    async with another_process(settings, talk) as other, asyncio.TaskGroup() as tasks:
        reading = await other.say(tasks, "slow")
        talk.conversation_id = other.talk.conversation_id
        await until_void_counts(server.services, after_s=EVERY_S + 2)
        await flush(server.services)
        async with talk.say("and then?", "quick") as refused:
            assert refused.status == 409
            assert (await refused.json())["error"]["error_type"] == "invalid_operation"
        async with talk.delete(f"/bp/ai/conversation/{talk.conversation_id}") as refused:
            assert refused.status == 409
        assert (await talk.history())["conversation"]["status"] == "running"
        vendor.release.set()
        await reading
        assert other.seen[-1].name == "end"
        assert other.seen[-1].content["record_id"] == 1
        assert await rows(server.services, talk.conversation_id) == [("complete", "Once upon a time")]
        assert (await talk.turn("and then?", "quick"))[-1].content["record_id"] == 2


async def test_turn_that_was_taken_over_ends_with_an_error_and_its_answer_is_stored(
    settings: Settings, server: Server, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await strategy("quick", "say:Fine")
    async with another_process(settings, talk) as other, asyncio.TaskGroup() as tasks:
        reading = await other.say(tasks, "slow")
        talk.conversation_id = other.talk.conversation_id
        await until(lambda: other.text == "Once upon a time")
        with other.paused():
            await silence(server.services)
            taken = await talk.turn("are you there?", "quick")
            assert (taken[-1].name, taken[-1].content["record_id"]) == ("end", 2)
        vendor.release.set()
        await reading
        assert other.seen[-1].name == "error"
        error = other.seen[-1].content["error"]
        assert error["error_type"] == "invalid_operation"
        assert "stored" in error["message"]
        assert (error["extra"]["retryable"], error["extra"]["record_id"]) == (True, 1)
    assert await rows(server.services, talk.conversation_id) == [
        ("incomplete", "Once upon a time"),
        ("complete", "Fine"),
    ]
    conversation = (await talk.history())["conversation"]
    assert (conversation["status"], conversation["record_token"]) == ("normal", (7 + 4) + (7 + 1))


@pytest.mark.soak
async def test_answer_that_arrived_during_a_pause_of_the_process_does_not_time_out(
    settings: Settings, server: Server, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    """Repeat this, because the order in which the loop sees the events of the pause is random."""
    await strategy("slow", "slow:Once upon a time", waits={"between_s": 1})
    async with another_process(settings, talk) as other:
        for number in range(1, 9):
            vendor.release.clear()
            other.seen.clear()
            async with asyncio.TaskGroup() as tasks:
                reading = await other.say(tasks, "slow")
                with other.paused():
                    vendor.release.set()
                    await asyncio.sleep(2)  # Longer than the vendor may be silent.
                await reading
            assert other.seen[-1].name == "end", other.seen[-1]
            assert other.seen[-1].content["record_id"] == number
        kept = await rows(server.services, other.talk.conversation_id)
        assert kept == [("complete", "Once upon a time")] * 8


@pytest.mark.soak
@pytest.mark.parametrize("paused_s", [27, 35])
@pytest.mark.parametrize("requested", [True, False], ids=["another turn is asked for", "nobody asks"])
async def test_stream_of_a_process_that_was_paused_agrees_with_its_record(
    settings: Settings, server: Server, talk: Talk, strategy: Any, vendor: Vendor, *, paused_s: int, requested: bool
) -> None:
    """Uses the timeouts of production. A pause of 27 s can mean 30 s without a heartbeat, which ends the turn."""
    await strategy("slow", "slow:Once upon a time")
    await strategy("quick", "say:Fine")
    async with another_process(settings, talk) as other, asyncio.TaskGroup() as tasks:
        await until_void_counts(server.services)
        reading = await other.say(tasks, "slow")
        talk.conversation_id = other.talk.conversation_id
        await until(lambda: other.text == "Once upon a time")
        statuses = set()
        with other.paused():
            vendor.release.set()
            until_s = time.monotonic() + paused_s
            while time.monotonic() < until_s:
                if requested and 200 not in statuses:
                    async with talk.say("are you there?", "quick") as answer:
                        statuses.add(answer.status)
                        await answer.read()
                await asyncio.sleep(0.25)
        await reading
    kept = await rows(server.services, talk.conversation_id)
    if 200 in statuses:
        assert other.seen[-1].name == "error"
        assert other.seen[-1].content["error"]["error_type"] == "invalid_operation"
        assert kept == [("incomplete", "Once upon a time"), ("complete", "Fine")]
    else:
        assert other.seen[-1].name == "end"
        assert kept == [("complete", "Once upon a time")]
    if requested:
        assert 409 in statuses
    assert (200 in statuses) or not requested or paused_s < 30


async def until_void_counts(services: Services, *, after_s: int = VOID_AFTER_S) -> None:
    """Consider processes dead `after_s` after their last heartbeat, and wait until Valkey has run for that long."""
    services.heartbeat._void_after_s = after_s

    async def has() -> bool:
        return (await services.valkey.client.info("server"))["uptime_in_seconds"] > after_s

    await until(has, within_s=60, every_s=0.5)


async def test_reader_of_a_paused_process_waits_and_gets_the_complete_stream(
    settings: Settings, server: Server, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    async with another_process(settings, talk) as other, asyncio.TaskGroup() as tasks:
        reading = await other.say(tasks, "slow")
        with other.paused():
            resumed = tasks.create_task(read_again(server, talk, other.stream_id))
            await asyncio.sleep(4)  # Longer than a process may take to respond.
            assert not resumed.done()
        vendor.release.set()
        await reading
        seen = await resumed
    assert [event.name for event in seen][-1] == "end"
    assert "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk")) == other.text


async def read_again(server: Server, talk: Talk, stream_id: str) -> list[SeenEvent]:
    """Resume a stream through the process of the test, from its first event."""
    headers = {"X-Service-Session-Token": talk.token}
    async with server.http.get(f"{server.url}/bp/ai/stream/{stream_id}", headers=headers) as response:
        assert response.status == 200
        return [event async for event in events(response)]
