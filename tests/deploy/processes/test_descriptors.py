"""A server with few descriptors reserves some for vendors, and logs when they run out."""

import asyncio
import os
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import ClientSession, TCPConnector

from app.services import Services
from app.settings import Settings
from tests.app.ai.conftest import strategy, vendor
from tests.deploy.callers import callers
from tests.deploy.commands import Command
from tests.deploy.serving import serving, settings
from tests.waiting import until

__all__ = ["settings", "strategy", "vendor"]

USERS = 20
TURNS = 68
MANY = int(os.environ.get("PARLEY_SOAK_CONNECTIONS", "9000"))  # noqa: TID251


@pytest.fixture
def server(services: Services) -> Any:
    """The stores that the process uses, for the fixture `strategy`."""

    @dataclass
    class Stores:
        services: Services

    return Stores(services)


@asynccontextmanager
async def server_with(descriptors: int, settings: Settings, **env: str) -> AsyncIterator[Command]:
    """Run a process that may have `descriptors` open files."""
    async with serving(settings, PARLEY_PROCESSES="1", **env) as process:
        resource.prlimit(process.process.pid, resource.RLIMIT_NOFILE, (descriptors, descriptors))
        yield process


@asynccontextmanager
async def half_heads(count: int, settings: Settings) -> AsyncIterator[None]:
    """Open connections that send an incomplete head. Those that the server closes are not reopened."""
    loop = asyncio.get_running_loop()

    class HalfHead(asyncio.Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:
            transport.write(b"GET /healthz HTTP/1.1\r\nX-Half: ")

    opened = []
    for start in range(0, count, 100):
        opening = (
            loop.create_connection(HalfHead, "127.0.0.1", settings.port)
            for _ in range(start, min(start + 100, count))
        )
        opened += [transport for transport, _ in await asyncio.gather(*opening)]
    try:
        yield
    finally:
        for transport in opened:
            transport.abort()
        await asyncio.sleep(0)


async def play(settings: Settings, count: int) -> list[str]:
    """Return how streams end whose users connected before many incomplete heads arrived."""
    async with ClientSession(connector=TCPConnector(limit=USERS)) as http:
        users = await callers(http, settings.public_url, USERS)
        async with half_heads(count, settings):
            for _ in range(-(-TURNS // USERS)):
                responses = await asyncio.gather(*(user.say("story", "good") for user in users))
                await asyncio.gather(
                    *(user.read(response) for user, response in zip(users, responses, strict=True))
                )
    return [event.name for user in users for event in user.seen if event.name in {"end", "error"}]


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("descriptors", "admitted", "count"),
    [(400, 150, 600), pytest.param(2_000, 750, MANY, marks=pytest.mark.soak)],
)
async def test_streams_reach_their_vendors_while_clients_use_all_allowed_connections(
    settings: Settings, services: Services, strategy: Any, *, descriptors: int, admitted: int, count: int
) -> None:
    await strategy("good", "say:Here I am")
    more = {"PARLEY_CONNECTIONS": "5000", "PARLEY_CONNECTIONS_PER_ADDRESS": "1000000"}
    async with server_with(descriptors, settings, **more) as process:
        capped = await process.event("connections.capped")
        assert (capped["configured"], capped["connections"], capped["descriptors"]) == (5000, admitted, descriptors)
        assert (await process.event("server.listening"))["connections"] == admitted
        ends = await play(settings, count)
        assert ends == ["end"] * len(ends)
        assert len(ends) >= TURNS
        assert (await process.event("connections.refused"))["by_bound"].keys() == {"process"}


@pytest.mark.timeout(120)
async def test_new_users_are_admitted_once_incomplete_heads_time_out(
    settings: Settings, services: Services, strategy: Any
) -> None:
    """At first all connections are in use, so the server refuses new users until it closes incomplete heads."""
    await strategy("good", "say:Here I am")
    more = {"PARLEY_CONNECTIONS": "5000", "PARLEY_CONNECTIONS_PER_ADDRESS": "1000000"}
    async with server_with(400, settings, **more) as process:
        await process.event("server.listening")
        async with half_heads(600, settings), ClientSession(connector=TCPConnector(limit=USERS)) as http:
            assert (await process.event("connections.refused"))["by_bound"].keys() == {"process"}
            async with http.get(f"{settings.public_url}/healthz") as refused:
                assert refused.status == 503
            await until_admitted(http, settings, USERS)
            users = await callers(http, settings.public_url, USERS)
            responses = await asyncio.gather(*(user.say("story", "good") for user in users))
            await asyncio.gather(*(user.read(response) for user, response in zip(users, responses, strict=True)))
    assert [user.seen[-1].name for user in users] == ["end"] * USERS


async def until_admitted(http: ClientSession, settings: Settings, count: int) -> None:
    """Wait until the server accepts `count` connections at once. An incomplete head times out after 10 s."""

    async def status() -> int:
        async with http.get(f"{settings.public_url}/healthz") as response:
            return response.status

    async def all_admitted() -> bool:
        return set(await asyncio.gather(*(status() for _ in range(count)))) == {200}

    await until(all_admitted, within_s=40, every_s=0.2)


@pytest.mark.timeout(120)
async def test_a_process_without_descriptors_names_them_in_its_log(settings: Settings, services: Services) -> None:
    async with serving(settings, PARLEY_PROCESSES="1") as process, ClientSession() as http:
        await process.event("server.listening")
        async with http.get(f"{settings.public_url}/healthz") as response:
            assert response.status == 200
        _, hard = resource.prlimit(process.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.process.pid, resource.RLIMIT_NOFILE, (8, hard))
        reported = await process.event("descriptors.exhausted")
    assert reported["descriptors"] == 8
    assert "LimitNOFILE" in reported["hint"]


@pytest.mark.timeout(120)
async def test_metrics_and_reference_of_a_process_in_production_are_on_its_metrics_port(
    settings: Settings, services: Services, unused_tcp_port: int
) -> None:
    more = {"PARLEY_ENV": "production", "PARLEY_METRICS_PORT": str(unused_tcp_port)}
    async with serving(settings, PARLEY_PROCESSES="1", **more) as process, ClientSession() as http:
        await process.event("server.listening")
        for path in ("/metrics", "/docs", "/openapi.json"):
            async with http.get(f"{settings.public_url}{path}") as response:
                assert response.status == 404
            async with http.get(f"http://127.0.0.1:{unused_tcp_port}{path}") as response:
                assert response.status == 200
        process.process.terminate()
        assert await process.end() == 0
