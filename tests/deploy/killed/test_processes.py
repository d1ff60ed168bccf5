"""A killed process ends only its own streams."""

import asyncio
import socket
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
from aiohttp import ClientError, ClientSession, TCPConnector

from app.services import Services
from app.settings import Settings
from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.app.ai.conftest import strategy, vendor
from tests.deploy.callers import callers
from tests.deploy.commands import Command
from tests.deploy.serving import serving, settings
from tests.peers.sse_client import all_events
from tests.peers.vendor import Vendor
from tests.running.ports import free_ports
from tests.waiting import until

__all__ = ["settings", "strategy", "vendor"]

_WAITING = 200
"""Connections: more than processes accept before they have noticed that their parent has ended."""


@pytest.fixture
def server(services: Services) -> Any:
    """The part of a server that the fixture `strategy` needs: the stores, which the processes share."""

    @dataclass
    class Stores:
        services: Services

    return Stores(services)


async def test_a_killed_process_ends_only_its_own_streams(
    settings: Settings, services: Services, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    connector = TCPConnector(force_close=True)  # Either process may get each request.
    async with serving(settings) as parent, ClientSession(connector=connector) as http:
        for _ in range(2):
            await parent.event("process.ready")
        talking = await callers(http, settings.public_url, 16)
        responses = [await caller.say("story", "slow") for caller in talking]
        reading = asyncio.gather(
            *(caller.read(response) for caller, response in zip(talking, responses, strict=True))
        )
        await until(lambda: all(len(caller.seen) > 3 for caller in talking))
        parent.descendants()[0].kill()
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


@pytest.mark.timeout(180)
async def test_stopped_processes_answer_until_the_last_stream_of_any_has_ended(
    settings: Settings, services: Services, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    connector = TCPConnector(force_close=True)  # Either listener may get each request.
    async with serving(settings, PARLEY_DRAIN_TIMEOUT_S="60") as parent, ClientSession(connector=connector) as http:
        for _ in range(2):
            await parent.event("process.ready")
        talking, late = await callers(http, settings.public_url, 2)
        response = await talking.say("story", "slow")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(talking.read(response))
            await until(lambda: len(talking.seen) > 3)
            parent.process.terminate()
            await parent.event("server.stopped")
            for _ in range(20):
                async with asyncio.timeout(10), http.get(f"{settings.public_url}/healthz") as answer:
                    assert answer.status == 200
            async with await late.say("story", "slow") as refusal:
                assert (refusal.status, refusal.headers["Retry-After"]) == (503, "1")
            vendor.release.set()
        assert talking.seen[-1].name == "end"
        assert await parent.end() == 0


async def test_only_the_second_signal_to_the_parent_cuts_streams(
    settings: Settings, services: Services, strategy: Any, vendor: Vendor
) -> None:
    """A child gets SIGTERM several times when its parent dies. The second one must not make it exit."""
    await strategy("slow", "slow:Once upon a time")
    limits = {"ping_after_s": 0.1}  # Pings show that the stream goes on, before its vendor's silence ends it.
    await services.configs.put("default", "limits", "default", limits, author="test", origin=COMMAND)
    async with serving(settings, PARLEY_DRAIN_TIMEOUT_S="60") as parent, ClientSession() as http:
        for _ in range(2):
            await parent.event("process.ready")
        (talking,) = await callers(http, settings.public_url, 1)
        response = await talking.say("story", "slow")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(talking.read(response))
            await until(lambda: len(talking.seen) > 3)
            parent.process.terminate()
            await parent.event("server.draining")
            for process in parent.descendants():
                with suppress(psutil.NoSuchProcess):  # A child without streams may have exited.
                    process.terminate()
                    process.terminate()
            seen = len(talking.seen)
            await until(lambda: len(talking.seen) > seen)
            assert not talking.cut
            parent.process.terminate()
        assert talking.cut
        assert talking.seen[-1].name != "end"
        assert await parent.end() == 0


async def kill_while_connections_wait(parent: Command, port: int) -> list[bytes]:
    """Kill the parent while connections wait to be accepted. Return the first line of the response to each."""
    processes = [child for child in parent.descendants() if "--one-of-several" in child.cmdline()]
    for process in processes:
        process.suspend()
    try:
        await until(lambda: all(process.status() == psutil.STATUS_STOPPED for process in processes))
        waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(_WAITING)]
        for connection in waiting:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: parley\r\nConnection: close\r\n\r\n")
        parent.process.kill()
        await until(lambda: not psutil.pid_exists(parent.process.pid))
    finally:
        for process in processes:
            process.resume()
    return await asyncio.gather(*map(status_line, waiting))


async def status_line(connection: socket.socket) -> bytes:
    reader, writer = await asyncio.open_connection(sock=connection)
    with closing(writer):
        async with asyncio.timeout(20):
            return (await reader.readline()).rstrip()


@pytest.mark.timeout(180)
async def test_processes_of_a_killed_parent_free_the_ports_for_a_new_server_while_their_streams_continue(
    settings: Settings, services: Services, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await strategy("quick", "say:Again")
    env = {"PARLEY_DRAIN_TIMEOUT_S": "60", "PARLEY_METRICS_PORT": str(free_ports(2)[0])}
    connector = TCPConnector(force_close=True)  # Either process may get each request.
    async with serving(settings, **env) as parent, ClientSession(connector=connector) as http:
        for _ in range(2):
            await parent.event("process.ready")
        *talking, late = await callers(http, settings.public_url, 5)
        responses = [await caller.say("story", "slow") for caller in talking]
        async with asyncio.TaskGroup() as tasks:
            for caller, response in zip(talking, responses, strict=True):
                tasks.create_task(caller.read(response))
            await until(lambda: all(len(caller.seen) > 3 for caller in talking))
            assert set(await kill_while_connections_wait(parent, settings.port)) == {b"HTTP/1.1 200 OK"}
            async with serving(settings, **env) as successor:
                for _ in range(2):
                    await successor.event("process.ready")
                for _ in range(4):
                    late.seen.clear()
                    await late.read(await late.say("story", "quick"))
                    assert late.seen[-1].name == "end"
                assert not [caller for caller in talking if caller.cut or caller.seen[-1].name == "end"]
                vendor.release.set()
                await until(lambda: all(caller.seen[-1].name == "end" for caller in talking))
                # Processes without a stream accept the connections that wait, too.
                assert set(await kill_while_connections_wait(successor, settings.port)) == {b"HTTP/1.1 200 OK"}


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
            for process in parent.descendants():
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
                except ClientError:  # Wait until the replacements run.
                    pass
                await asyncio.sleep(0.2)
        assert time.monotonic() - killed < 31
        assert statuses == {409, 200}
