"""Processes that live as long as a block of ours, and never longer than we do."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from aiohttp import ClientError, ClientSession, ClientTimeout

from app.process.children import ending_with_parent
from streams.tasks import background

T = TypeVar("T")

_ASK_AGAIN_S = 0.1


class Failed(Exception):
    """This machine cannot run what is wanted; the text says why, and where to read more."""


@asynccontextmanager
async def running(
    command: list[str], *, stop: signal.Signals = signal.SIGTERM, stop_s: float = 10, **options: Any
) -> AsyncIterator[Process]:
    """Run `command` until the end of the block, then send it `stop`, and kill it where that does not help.

    It is no member of our process group: Ctrl-C is ours to pass on, in our order. A second one, while we wait
    for the end, kills it at once. `options` are those of `subprocess.Popen`.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=ending_with_parent(stop),
        **options,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(stop)
            try:
                async with asyncio.timeout(stop_s):
                    await process.wait()
            except TimeoutError:
                await _killed(process)
            except asyncio.CancelledError:
                await _killed(process)
                raise


async def _killed(process: Process) -> None:
    process.kill()
    await process.wait()


async def while_running(processes: Mapping[str, Process], work: Coroutine[Any, Any, T]) -> T:
    """Do `work`; `Failed` when one of `processes`, given by their names, ends before it is done."""
    async with background(work) as done, background(_first_end(processes)) as ended:
        await asyncio.wait([done, ended], return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise Failed(f"{ended.result()} ended by itself")
        return done.result()


async def _first_end(processes: Mapping[str, Process]) -> str:
    async with AsyncExitStack() as stack:
        waits = {
            await stack.enter_async_context(background(process.wait())): name for name, process in processes.items()
        }
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        return next(name for wait, name in waits.items() if wait in done)


async def until_ready(url: str) -> None:
    """Wait until `/readyz` of the server at `url` answers 200."""
    async with ClientSession(timeout=ClientTimeout(total=5), trust_env=False) as http:
        while True:
            try:
                async with http.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        return
            except (ClientError, TimeoutError):
                pass
            await asyncio.sleep(_ASK_AGAIN_S)
