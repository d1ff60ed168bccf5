"""Logins by password do not hold up streams."""

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.operators.audit import COMMAND
from streams.tasks import background
from tests.app.ai.conftest import Talk
from tests.password_hashes import usual_hashes
from tests.peers.sse_client import events
from tests.running.servers import Databases, Server, new_server
from tests.waiting import until

WORDS = 1_000
LOGINS = 50
PASSWORD = "correct horse battery"
WIDE = {"count": 100_000, "per_s": 1}


@pytest.fixture
async def server(databases: Databases, tmp_path: Path) -> AsyncIterator[Server]:
    with usual_hashes():
        async with new_server(databases, tmp_path) as running:
            yield running


async def post(talk: Talk, path: str) -> int:
    body = {"name_password": {"name": "ada", "password": PASSWORD}}
    async with talk.server.http.post(f"{talk.server.url}/bp/user/{path}", json=body) as response:
        return response.status


async def test_events_arrive_while_passwords_are_checked(talk: Talk, strategy):
    """If the event loop computed hashes, each read would wait for the end of one.

    This shows neither by how much the slowest events are delayed, nor what happens to many streams, because both
    depend on the machine. `python -m bench.logins` measures the 99th percentile of the gaps between the events of
    200 streams.
    """
    names = ("signup", "login_network", "login_address", "login_account")
    limits = {"rates": dict.fromkeys(names, WIDE)}
    await talk.server.services.configs.put("default", "limits", "default", limits, author="tests", origin=COMMAND)
    await strategy("one", f"paced:{WORDS}")
    assert await post(talk, "signup") == 200
    arrivals: list[float] = []

    async def read() -> None:
        async with talk.say("Hello", "one") as response:
            async for _ in events(response):
                arrivals.append(time.monotonic())  # noqa: PERF401 - the first one is awaited

    async with background(read()) as reading:
        await until(lambda: arrivals)
        began = time.monotonic()
        statuses = await asyncio.gather(*(post(talk, "login") for _ in range(LOGINS)))
        took = time.monotonic() - began
        await reading
    assert statuses == [200] * LOGINS
    during = [at for at in arrivals if began < at < began + took]
    hash_s = took * os.cpu_count() / LOGINS
    assert usual_wait_s(during) < hash_s / 4


def usual_wait_s(arrivals: list[float]) -> float:
    """Return the gap between arrivals in which a random moment lies, at the median of all moments."""
    gaps = sorted(later - earlier for earlier, later in itertools.pairwise(arrivals))
    total, passed = sum(gaps), 0.0
    for gap in gaps:
        passed += gap
        if passed >= total / 2:
            return gap
    raise AssertionError("fewer than two events arrived")
