"""Runs the local engines as a separate process, and restarts it on the same port when it ends."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deploy.running import Failed, running
from streams.tasks import background
from streams.wire.codec import loads

_START_S = 60
_STABLE_S = 60
"""After running for longer than this, the process is restarted with the shortest delay."""
_MAX_DELAY_S = 30.0


@dataclass(frozen=True, slots=True)
class Engines:
    """The URL of the engines, and the fault of each engine that does not work, by name."""

    url: str
    faults: dict[str, str]


@asynccontextmanager
async def local_engines(log: Path) -> AsyncIterator[Engines]:
    """Run `vendors.local` during the block. Its output is appended to the file `log`."""
    announced: asyncio.Future[Engines] = asyncio.get_running_loop().create_future()
    async with background(_keep_running(announced, log)) as runner:
        futures: list[asyncio.Future[Any]] = [announced, runner]
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        if runner.done():
            await runner
        yield announced.result()


async def _keep_running(announced: asyncio.Future[Engines], log: Path) -> None:
    clock = asyncio.get_running_loop().time
    port, delay_s = 0, 0.0
    while True:
        began = clock()
        command = [sys.executable, "-m", "vendors.local", "--port", str(port)]
        with log.open("ab") as output:
            async with running(command, stdout=PIPE, stderr=output) as process:
                engines = await _announcement(process, log)
                if engines is not None and not announced.done():
                    announced.set_result(engines)
                    port = urlsplit(engines.url).port or 0
                code = await process.wait()
        if not announced.done():
            raise Failed(f"the local engines failed to start, see {log}")
        delay_s = 0.5 if clock() - began > _STABLE_S else min(max(0.5, delay_s * 2), _MAX_DELAY_S)
        print(f"parley: the local engines ended ({code}), see {log}; restart in {delay_s:g} s", flush=True)
        await asyncio.sleep(delay_s)


async def _announcement(process: Process, log: Path) -> Engines | None:
    """Return what the process announces when it listens, or `None` if it ends before that."""
    assert process.stdout is not None, "the process was started with a pipe"
    try:
        async with asyncio.timeout(_START_S):
            line = await process.stdout.readline()
    except TimeoutError:
        raise Failed(f"the local engines were not ready within {_START_S} s, see {log}") from None
    if not line:
        return None
    announcement = loads(line)
    return Engines(
        announcement["listening"], {name: fault for name, fault in announcement["engines"].items() if fault}
    )
