"""Runs commands as processes, reads their output, and finds processes that they leave behind."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import psutil

from app.process.children import ending_with_parent
from streams.wire.codec import loads
from tests import card_numbers
from tests.running.forks import AVAILABLE, ForkedProcess

_TIMEOUT_S = 90
_FORKED = {
    "app",
    "bench.attack",
    "bench.load",
    "bench.upstream",
    "deploy.local",
    "tests.deploy.processes.small_process",
}
"""Modules whose imports the processes of tests share."""


@dataclass
class Command:
    """A running command. `lines` has what it has printed so far, including standard error."""

    process: Process | ForkedProcess
    lines: list[str] = field(default_factory=list)

    async def until(self, text: str) -> str:
        """Read until a line contains `text`, and return that line."""
        async with asyncio.timeout(_TIMEOUT_S):
            async for line in self:
                if text in line:
                    return line
        raise AssertionError(f"it ended without a word of {text!r}:\n" + "\n".join(self.lines))

    async def event(self, name: str) -> dict:
        """Return the next log line with this event."""
        return loads(await self.until(f'"event":"{name}"'))

    async def __aiter__(self) -> AsyncIterator[str]:
        while raw := await self.process.stdout.readline():
            self.lines.append(raw.decode().rstrip())
            yield self.lines[-1]

    async def end(self) -> int:
        """Read the remaining output and return the exit code."""
        async with asyncio.timeout(_TIMEOUT_S):
            async for _ in self:
                pass
            return await self.process.wait()

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


@asynccontextmanager
async def command(*arguments: str, fresh: bool = False, **env: str) -> AsyncIterator[Command]:
    """Run `python -m <arguments>` with `env` added to the environment. The end of the block kills it.

    `fresh`: for tests of the memory or of the first moments of a process, which must not be forked from another.
    """
    environment = {**os.environ, **env}  # noqa: TID251 - it is handed on
    process: Process | ForkedProcess
    if AVAILABLE and arguments[0] in _FORKED and not fresh:
        process = await ForkedProcess.start(arguments, environment, separate_errors=False)
    else:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *arguments),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=ending_with_parent(signal.SIGTERM),
        )
    running = Command(process)
    try:
        yield running
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await running.end()
        if isinstance(process, ForkedProcess):
            await process.close()
    assert not [line for line in running.lines if '"event":"response.unlisted_error"' in line]
    assert not card_numbers.shows_number("\n".join(running.lines), card_numbers.SENT), (
        "it has printed a card's number"
    )


async def left_of(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that do not end in time. A worker waits for its database, which may be gone too."""
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, timeout=30)
    return alive
