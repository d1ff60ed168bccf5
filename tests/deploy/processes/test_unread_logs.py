"""If standard output is not read, the server is not delayed. It drops lines, but never parts of them."""

import asyncio
import fcntl
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import pytest
from aiohttp import ClientSession

from app.process.children import ending_with_parent
from app.services import Services
from app.settings import Settings
from streams.wire.codec import loads
from tests.deploy.processes.stalled_readers import http
from tests.deploy.serving import server_env, settings

__all__ = ["http", "settings"]

PIPE_BYTES = 4096
REQUESTS = 60
"""Fewer anonymous requests than are logged in a second. Their lines have more than 250 bytes each."""
WAITING_LINES = 5_000
LINES_IN_PIPE = 200
"""More lines than the pipe and the writer can hold."""

MANY = """
import asyncio, sys
import structlog
from app.observing import logs
from prometheus_client import REGISTRY

async def main():
    logs.configure(level="info")
    log = structlog.get_logger()
    for number in range(12_000):
        log.info("line", number=number)
    print("all said", file=sys.stderr, flush=True)
    sys.stdin.readline()
    log.info("after")
    print(REGISTRY.get_sample_value("parley_log_lines_dropped_total"), file=sys.stderr, flush=True)

asyncio.run(main())
"""

CRASH = """
import asyncio
import structlog
from app.observing import logs

async def main():
    logs.configure(level="info")
    for number in range(200):
        structlog.get_logger().info("line", number=number)
    raise RuntimeError("a bug")

asyncio.run(main())
"""


@dataclass
class Unread:
    """A process and its standard output, a small pipe from which only the test reads."""

    process: Process
    output: BinaryIO

    async def line(self) -> dict[str, Any]:
        return loads(await asyncio.to_thread(self.output.readline))

    async def until(self, event: str) -> list[dict[str, Any]]:
        """The lines up to the next one of `event`."""
        lines = [await self.line()]
        while lines[-1]["event"] != event:
            lines.append(await self.line())
        return lines

    async def rest(self) -> list[dict[str, Any]]:
        return [loads(line) for line in await asyncio.to_thread(self.output.readlines)]


@asynccontextmanager
async def unread(*arguments: str, **env: str) -> AsyncIterator[Unread]:
    """`python <arguments>`, which is killed at the end of the block or after 90 s."""
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    with os.fdopen(reading, "rb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *arguments),
            env={**os.environ, **env},  # noqa: TID251 - it is handed on
            stdin=PIPE,
            stdout=writing,
            stderr=PIPE,
            preexec_fn=ending_with_parent(signal.SIGTERM),
        )
        os.close(writing)
        try:
            async with asyncio.timeout(90):
                yield Unread(process, output)
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


@pytest.mark.timeout(120)
async def test_server_answers_and_ends_while_its_log_is_not_read_and_writes_all_lines_later(
    services: Services, settings: Settings, http: ClientSession
) -> None:
    async def answers() -> None:
        for number in range(REQUESTS):
            async with http.get(f"{settings.public_url}/{number}/{'x' * 150}") as answer:
                assert answer.status == 404
        async with http.get(f"{settings.public_url}/healthz") as answer:
            assert answer.status == 200

    async with unread("-m", "app", "serve", **server_env(settings, PARLEY_PROCESSES="1")) as server:
        await server.until("server.listening")
        await answers()
        paths = [(await server.until("request"))[-1]["path"] for _ in range(REQUESTS)]
        assert [int(path.split("/")[1]) for path in paths] == list(range(REQUESTS))
        await answers()
        server.process.terminate()
        assert await server.process.wait() == 0


async def test_lines_beyond_those_that_may_wait_are_dropped_and_reported_in_their_place() -> None:
    async with unread("-c", MANY) as running:
        assert await running.process.stderr.readline() == b"all said\n"
        *kept, report = await running.until("log.lines_dropped")
        running.process.stdin.write(b"\n")
        assert [line["event"] for line in await running.rest()] == ["after"]
        assert [line["number"] for line in kept] == list(range(len(kept)))
        assert WAITING_LINES <= len(kept) < WAITING_LINES + LINES_IN_PIPE
        assert (report["level"], report["count"]) == ("warning", 12_000 - len(kept))
        assert float(await running.process.stderr.readline()) == 12_000 - len(kept)


async def test_lines_before_a_crash_are_written() -> None:
    async with unread("-c", CRASH) as running:
        assert [line["number"] for line in await running.rest()] == list(range(200))
        assert await running.process.wait() == 1
