"""After SIGTERM under load, no stream is cut before the drain timeout, and each one is stored."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from app.commands.users import make_users
from app.services import Services
from app.settings import Settings
from bench.deployment import DeploymentSpec, strategies
from bench.machine import raise_descriptor_limit
from storage.operators.audit import COMMAND
from streams.tasks import background
from streams.wire.codec import loads
from tests.calendar.clock import epoch_s
from tests.deploy.callers import Caller
from tests.deploy.commands import Command, command
from tests.deploy.serving import serving, settings
from tests.waiting import until

__all__ = ["settings"]

SOAK_STREAMS = int(os.environ.get("PARLEY_SOAK_STREAMS", "2000"))  # noqa: TID251
PAUSE_S = 0.02
"""The time between two new users."""
LATE_SHARE = 0.05
"""New users during the drain, as a share of those who have a stream."""
READY_S = 300
BEYOND_S = 40
"""After the drain a server has 10 s to store streams, 10 s to copy logs and 5 s for last writes. The rest is for a
busy machine."""
ROUNDED_MS = 10
KEPT_AS = {"end": "complete", "error": "incomplete"}


@dataclass
class Users:
    """Users of one server. `begun` have a stream. `refused` counts the other responses."""

    http: ClientSession
    settings: Settings
    services: Services
    model: str
    tokens: Iterator[str]
    begun: list[Caller] = field(default_factory=list)
    refused: Counter[tuple[int, str]] = field(default_factory=Counter)
    running_when_gone: int | None = None
    """The number of running turns in the database when the first new user could not connect."""

    async def converse(self, tasks: asyncio.TaskGroup) -> None:
        """Begin the stream of one user and read it to its end."""
        token = {"X-Service-Session-Token": next(self.tokens)}
        caller = Caller(self.http, self.settings.public_url, token)
        response = await caller.say("Tell me a story", self.model)
        if response.status == 200:
            self.begun.append(caller)
            tasks.create_task(caller.read(response))
        else:
            self.refused[response.status, response.headers.get("Retry-After", "")] += 1
            response.release()

    async def arrive(self, tasks: asyncio.TaskGroup) -> None:
        """Begin one stream after another, until the server no longer listens."""
        try:
            while True:
                await self.converse(tasks)
                await asyncio.sleep(PAUSE_S)
        except ClientError:
            async with self.services.database.connection() as conn:
                self.running_when_gone = await conn.fetchval(
                    "select count(*) from conversation_records where status = 'running'"
                )

    def all_talking(self, count: int) -> bool:
        """Return whether `count` streams have begun and sent some events each."""
        return len(self.begun) >= count and all(len(caller.seen) > 3 for caller in self.begun[:count])


@dataclass(frozen=True)
class Terminated:
    """The outcome of a server that got SIGTERM at `sigterm_ms`, when it had `live` streams."""

    users: Users
    sigterm_ms: float
    live: int
    took_s: float


def log_lines(parent: Command, event: str) -> list[dict[str, Any]]:
    return [loads(line) for line in parent.lines if f'"event":"{event}"' in line]


async def listen(parent: Command) -> None:
    async for _ in parent:
        pass


async def terminate(
    settings: Settings, services: Services, model: str, *, streams: int, drain_s: int, processes: int
) -> Terminated:
    """Send SIGTERM to a server with `streams` streams while users arrive. The server must exit by itself."""
    raise_descriptor_limit()
    tokens = [token for _, token in await make_users(services, "default", streams)]
    env = {"PARLEY_DRAIN_TIMEOUT_S": str(drain_s), "PARLEY_PROCESSES": str(processes)}
    connector = TCPConnector(limit=0, force_close=True)  # Any process may get each request.
    async with command("bench.upstream") as vendor:
        vendor_url = f"http://127.0.0.1:{int(await vendor.until(''))}"
        for key, value in strategies(DeploymentSpec(frozenset({model})), vendor_url, "").items():
            kind, _, name = key.partition("/")
            await services.configs.put("default", kind, name, value, author="test", origin=COMMAND)
        async with (
            serving(settings, **env) as parent,
            background(listen(parent)),
            ClientSession(connector=connector, timeout=ClientTimeout(total=None)) as http,
        ):
            users = Users(http, settings, services, model, cycle(tokens))
            await until(lambda: len(log_lines(parent, "server.listening")) == processes, within_s=READY_S)
            async with asyncio.TaskGroup() as tasks:
                for _ in range(streams):
                    tasks.create_task(users.converse(tasks))
                await until(lambda: users.all_talking(streams), within_s=READY_S)
                tasks.create_task(users.arrive(tasks))
                await until(lambda: len(users.begun) >= streams * (1 + LATE_SHARE), within_s=READY_S)
                sigterm_ms, began_s = epoch_s() * 1000, time.monotonic()
                parent.process.send_signal(signal.SIGTERM)
                assert await parent.process.wait() == 0
                took_s = time.monotonic() - began_s
        assert [line for line in parent.lines if '"level":"info"' not in line] == []
        draining = log_lines(parent, "server.draining")
    return Terminated(users, sigterm_ms, sum(line["streams"] for line in draining), took_s)


async def check(terminated: Terminated, services: Services, *, streams: int, drain_s: int, processes: int) -> None:
    """Check that all streams are stored as they were sent, and that later ones are refused."""
    users = terminated.users
    assert terminated.live >= streams, (
        "the streams ended before all had begun: this machine is too slow for these lengths"
    )
    assert terminated.took_s < drain_s + BEYOND_S
    assert set(users.refused) <= {(503, "1")}
    assert users.refused
    assert users.running_when_gone == 0, "it listens until no stream is left"
    async with services.database.connection() as conn:
        rows = await conn.fetch("select stream_id, status, content from conversation_records")
    kept = {row["stream_id"]: row for row in rows}
    assert len(rows) == len(users.begun)
    for caller in users.begun:
        assert not caller.cut
        ids = [event.id for event in caller.seen if event.name != "ping"]
        assert ids == list(range(1, len(ids) + 1))
        row = kept[caller.stream_id]
        assert row["status"] == KEPT_AS[caller.seen[-1].name]
        user, *answers = row["content"]
        assert user["role"] == "user"
        assert "".join(item["text"] for answer in answers for item in answer["content"]) == caller.text


async def check_normal_ends(settings: Settings, services: Services, model: str, **size: int) -> None:
    """Send SIGTERM to a server whose streams are shorter than its drain."""
    terminated = await terminate(settings, services, model, **size)
    await check(terminated, services, **size)
    for caller in terminated.users.begun:
        last = caller.seen[-1]
        assert last.name == "end", last
        assert last.content["finish_reason"] == "stop"
        assert last.content["digest"]["chars"] == len(caller.text)
    assert terminated.took_s < size["drain_s"], "it waits no longer than its streams last"


async def check_cut_streams(settings: Settings, services: Services, model: str, **size: int) -> None:
    """Send SIGTERM to a server whose streams are longer than its drain."""
    terminated = await terminate(settings, services, model, **size)
    await check(terminated, services, **size)
    drain_end_ms = terminated.sigterm_ms + size["drain_s"] * 1000 - ROUNDED_MS
    for caller in terminated.users.begun:
        last = caller.seen[-1]
        assert last.name == "error", last
        error = last.content["error"]
        assert error["message"] == "backend_unavailable: the server is draining"
        assert error["extra"]["retryable"] is True
        assert last.timestamp >= drain_end_ms


@pytest.mark.timeout(240)
@pytest.mark.parametrize("processes", [1, 2])
async def test_streams_end_normally_while_a_server_drains(
    settings: Settings, services: Services, processes: int
) -> None:
    await check_normal_ends(settings, services, "40x50", streams=20, drain_s=30, processes=processes)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("processes", [1, 2])
async def test_streams_longer_than_the_drain_are_stored_partially(
    settings: Settings, services: Services, processes: int
) -> None:
    await check_cut_streams(settings, services, "2000x50", streams=20, drain_s=2, processes=processes)


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_server_without_streams_serves_until_a_proxy_has_noticed(
    settings: Settings, services: Services, processes: int
) -> None:
    url, notice_s = settings.public_url, 3
    more = {"PARLEY_PROCESSES": str(processes), "PARLEY_DRAIN_NOTICE_S": str(notice_s)}
    async with serving(settings, **more) as parent, ClientSession() as http:
        for _ in range(processes):
            await parent.event("server.listening")
        caller = Caller(http, url, {})
        await caller.login()
        began_s = time.monotonic()
        parent.process.send_signal(signal.SIGTERM)
        for _ in range(processes):
            await parent.event("server.draining")
        async with http.get(f"{url}/readyz") as ready:
            assert ready.status == 503
        await caller.login()
        assert await parent.end() == 0
    assert notice_s <= time.monotonic() - began_s < notice_s + BEYOND_S


@pytest.mark.soak
async def test_two_thousand_streams_end_normally_while_a_server_drains(
    settings: Settings, services: Services
) -> None:
    await check_normal_ends(settings, services, "60x1000", streams=SOAK_STREAMS, drain_s=300, processes=1)


@pytest.mark.soak
async def test_two_thousand_streams_longer_than_the_drain_are_stored_partially(
    settings: Settings, services: Services
) -> None:
    await check_cut_streams(settings, services, "600x1000", streams=SOAK_STREAMS, drain_s=15, processes=1)
