"""The local engines as a process of their own: started, watched, and started again on the same port."""

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
_SOUND_S = 60
"""Engines that ran as long did not fail at their start."""
_LONGEST_DELAY_S = 30.0


@dataclass(frozen=True, slots=True)
class Engines:
    """Where they listen, and by name what keeps some of them from working."""

    url: str
    faults: dict[str, str]


@asynccontextmanager
async def local_engines(log: Path) -> AsyncIterator[Engines]:
    """Run `vendors.local` during the block. What it says goes to `log`."""
    announced: asyncio.Future[Engines] = asyncio.get_running_loop().create_future()
    async with background(_keep(announced, log)) as kept:
        either: list[asyncio.Future[Any]] = [announced, kept]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if kept.done():
            await kept
        yield announced.result()


async def _keep(announced: asyncio.Future[Engines], log: Path) -> None:
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
            raise Failed(f"the local engines ended at their start, see {log}")
        delay_s = 0.5 if clock() - began > _SOUND_S else min(max(0.5, delay_s * 2), _LONGEST_DELAY_S)
        print(f"parley: the local engines ended ({code}), see {log}; they start again in {delay_s:g} s", flush=True)
        await asyncio.sleep(delay_s)


async def _announcement(process: Process, log: Path) -> Engines | None:
    """What it says when it listens; nothing when it ended before."""
    assert process.stdout is not None, "a pipe was asked for"
    try:
        async with asyncio.timeout(_START_S):
            line = await process.stdout.readline()
    except TimeoutError:
        raise Failed(f"the local engines were not ready within {_START_S} s, see {log}") from None
    if not line:
        return None
    said = loads(line)
    return Engines(said["listening"], {name: fault for name, fault in said["engines"].items() if fault})
