"""`python -m vendors.sandbox`: a process that listens, and the commands for it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from app.process.children import ending_with_parent
from streams.wire.codec import dumps, loads
from tests.running.forks import run

SANDBOX = [sys.executable, "-m", "vendors.sandbox"]


@asynccontextmanager
async def running() -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    process = await asyncio.create_subprocess_exec(
        *SANDBOX, "--port", "0", stdout=asyncio.subprocess.PIPE, preexec_fn=ending_with_parent(signal.SIGTERM)
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            line = await process.stdout.readline()
        yield loads(line)["listening"], process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def reported(*words: str) -> tuple[int, str]:
    """Run a command. Return the exit code and what it prints."""
    async with asyncio.timeout(30):
        code, output, errors = await run("vendors.sandbox", *words, env=os.environ)  # noqa: TID251 - handed on
    return code, output + errors


async def status(url: str) -> int:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
    headers = {"Authorization": "Bearer any", "Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{url}/openai/v1/chat/completions", data=dumps(body), headers=headers) as response,
    ):
        return response.status


async def test_faults_are_switched_from_the_command_line_and_calls_listed():
    async with running() as (url, process):
        switched = "openai: server_error in 100% of calls, position: after\n"
        assert await reported("fault", "openai", "server_error", "--url", url) == (0, switched)
        assert await status(url) == 500
        assert await reported("clear", "openai", "--url", url) == (0, "openai: no fault\n")
        assert await status(url) == 200
        code, lines = await reported("calls", "--url", url)
        refused, words = await reported("fault", "openai", "server_error", "--rate", "2", "--url", url)
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(10):
            ended = await process.wait()

    assert code == 0
    assert [loads(line)["how"] for line in lines.splitlines()] == ["fault", "done"]
    assert refused == 1
    assert "rate" in words
    assert ended == 0
