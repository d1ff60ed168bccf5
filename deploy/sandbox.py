"""Runs the sandbox as a separate process. It emulates the platforms of the development app and keeps its emails."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.running import Failed, running
from streams.wire.codec import loads

_START_S = 60


@dataclass(frozen=True, slots=True)
class RunningSandbox:
    url: str
    inbox_url: str
    process: Process


@asynccontextmanager
async def sandbox(log: Path) -> AsyncIterator[RunningSandbox]:
    """Run `vendors.sandbox` during the block. Its errors are appended to the file `log`."""
    with log.open("ab") as output:
        command = [sys.executable, "-m", "vendors.sandbox", "--port", "0"]
        async with running(command, stdout=PIPE, stderr=output) as process:
            urls = await _urls(process, log)
            yield RunningSandbox(urls["listening"], urls["inbox"], process)


async def _urls(process: Process, log: Path) -> dict[str, str]:
    assert process.stdout is not None, "the process was started with a pipe"
    try:
        async with asyncio.timeout(_START_S):
            line = await process.stdout.readline()
    except TimeoutError:
        line = b""
    if not line:
        raise Failed(f"the sandbox failed to start, see {log}")
    urls: dict[str, str] = loads(line)
    return urls
