"""Streams of several processes: one that is killed takes its own alone, one that is told to end cuts none early."""

import asyncio
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psutil
import pytest
from aiohttp import ClientError, ClientResponse, ClientSession, TCPConnector

from app.services import Services
from app.settings import Settings
from streams.wire.codec import dumps
from tests.app.ai.conftest import strategy, vendor
from tests.deploy.test_processes import serving
from tests.sse_client import SeenEvent, all_events, events
from tests.vendor import Vendor

__all__ = ["strategy", "vendor"]


@pytest.fixture
def settings(settings: Settings, listener: socket.socket) -> Settings:
    listener.close()
    return settings


@pytest.fixture
def server(services: Services) -> Any:
    """What `strategy` wants of a server: the stores, which the processes share."""

    @dataclass
    class Stores:
        services: Services

    return Stores(services)


@dataclass
class Caller:
    """A user with a stream of their own."""

    http: ClientSession
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    seen: list[SeenEvent] = field(default_factory=list)
    stream_id: str = ""
    conversation_id: str = ""
    cut: bool = False

    async def login(self) -> None:
        async with self.http.post(f"{self.url}/bp/user/login", json={"device": {"id": uuid4().hex}}) as answer:
            token = (await answer.json())["user"]["session"]["session_token"]
        self.headers = {"X-Service-Session-Token": token}

    async def say(self, text: str, name: str) -> ClientResponse:
        params = {"strategies": [name], "type": "text", "language_code": "en", "target_language_code": "en"}
        path = f"{self.url}/bp/ai/conversation"
        response = await self.http.post(path, data=dumps(params) + text.encode(), headers=self.headers)
        self.stream_id = response.headers["X-Service-Stream-Id"]
        self.conversation_id = response.headers["X-Service-Conversation-Id"]
        return response

    async def read(self, response: ClientResponse) -> None:
        try:
            async for event in events(response):
                self.seen.append(event)
        except (ClientError, ConnectionError):
            self.cut = True

    def resume(self) -> Any:
        after = str(self.seen[-1].id if self.seen else 0)
        path = f"{self.url}/bp/ai/stream/{self.stream_id}"
        return self.http.get(path, headers={**self.headers, "Last-Event-ID": after})


async def callers(http: ClientSession, url: str, count: int) -> list[Caller]:
    made = [Caller(http, url) for _ in range(count)]
    await asyncio.gather(*(caller.login() for caller in made))
    return made


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - of other processes
            await asyncio.sleep(0.02)


def processes_of(parent: Any) -> list[psutil.Process]:
    return [child for child in parent.descendants() if "--one-of-several" in child.cmdline()]


async def test_process_that_is_killed_takes_its_own_streams_alone(
    settings: Settings, services: Services, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    connector = TCPConnector(force_close=True)  # each request may meet either process
    async with serving(settings) as parent, ClientSession(connector=connector) as http:
        for _ in range(2):
            await parent.event("process.ready")
        talking = await callers(http, settings.public_url, 16)
        responses = [await caller.say("story", "slow") for caller in talking]
        reading = asyncio.gather(
            *(caller.read(response) for caller, response in zip(talking, responses, strict=True))
        )
        await until(lambda: all(len(caller.seen) > 3 for caller in talking))
        processes_of(parent)[0].kill()
        await until(lambda: any(caller.cut for caller in talking))
        vendor.release.set()
        await reading
        lost, others = [c for c in talking if c.cut], [c for c in talking if not c.cut]
        assert lost
        assert others, "both had some"
        assert all(caller.seen[-1].name == "end" for caller in others)
        for caller in lost:
            async with asyncio.timeout(5), caller.resume() as answer:
                rest = await all_events(answer)
            assert (rest[-1].id, rest[-1].name) == (None, "error")
            assert rest[-1].content["error"]["extra"]["retryable"] is True


@pytest.mark.soak
async def test_turn_of_a_process_that_was_killed_is_free_within_half_a_minute(
    settings: Settings, services: Services, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await strategy("quick", "say:Again")
    async with serving(settings) as parent, ClientSession(connector=TCPConnector(force_close=True)) as http:
        for _ in range(2):
            await parent.event("process.ready")
        [caller] = await callers(http, settings.public_url, 1)
        response = await caller.say("story", "slow")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(caller.read(response))
            await until(lambda: len(caller.seen) > 3)
            for process in processes_of(parent):
                process.kill()
        killed = time.monotonic()
        params = {"strategies": ["quick"], "type": "text", "language_code": "en", "target_language_code": "en"}
        body = dumps({**params, "conversation_id": caller.conversation_id}) + b"and then?"
        statuses = set()
        async with asyncio.timeout(60):
            while 200 not in statuses:
                try:
                    path = f"{settings.public_url}/bp/ai/conversation"
                    async with http.post(path, data=body, headers=caller.headers) as answer:
                        statuses.add(answer.status)
                except ClientError:  # until others are there in their place
                    pass
                await asyncio.sleep(0.2)
        assert time.monotonic() - killed < 31
        assert statuses == {409, 200}


async def test_process_that_is_told_to_end_cuts_no_stream_before_its_time(
    settings: Settings, services: Services, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await strategy("hang", "hang")
    async with serving(settings, PARLEY_DRAIN_TIMEOUT_S="2") as parent, ClientSession() as http:
        for _ in range(2):
            await parent.event("process.ready")
        talking = await callers(http, settings.public_url, 9)
        responses = [await caller.say("story", "slow") for caller in talking[:8]]
        responses.append(await talking[8].say("nothing", "hang"))
        reading = asyncio.gather(
            *(caller.read(response) for caller, response in zip(talking, responses, strict=True))
        )
        await until(lambda: len(vendor.calls) == len(talking))
        told = time.monotonic()
        parent.process.send_signal(signal.SIGTERM)
        await parent.event("server.draining")
        vendor.release.set()
        await reading
        assert 1.9 < time.monotonic() - told < 8
        assert await parent.end() == 0
    *finished, hanging = talking
    assert [caller.seen[-1].name for caller in finished] == ["end"] * 8
    assert hanging.seen[-1].content["error"]["extra"]["retryable"] is True
    async with services.database.connection() as conn:
        rows = await conn.fetch("select status, count(*) from conversation_records group by status")
    assert {row["status"]: row["count"] for row in rows} == {"complete": 8, "incomplete": 1}
