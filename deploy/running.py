"""Child processes that run for the duration of a block and end with this process at the latest."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from aiohttp import ClientError, ClientSession, ClientTimeout

from app.process.children import ending_with_parent
from streams.tasks import background

T = TypeVar("T")

_POLL_S = 0.1


class Failed(Exception):
    """A process cannot be run. The message gives the reason, and where to find more about it."""


@asynccontextmanager
async def running(
    command: list[str],
    *,
    stop: signal.Signals = signal.SIGTERM,
    stop_s: float = 10,
    prepare: Callable[[], None] | None = None,
    **options: Any,
) -> AsyncIterator[Process]:
    """Run `command` during the block. At its end send the signal `stop`, and kill the process after `stop_s`.

    The process is in a separate session, so that Ctrl-C does not reach it and processes are stopped in order. It
    is killed if this task is cancelled while waiting for its end. `prepare` is called in the new process before the
    command is executed. `options` are those of `subprocess.Popen`.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_each_of(prepare, ending_with_parent(stop)),
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
                await _kill(process)
            except asyncio.CancelledError:
                await _kill(process)
                raise


def _each_of(*functions: Callable[[], None] | None) -> Callable[[], None]:
    given = [function for function in functions if function is not None]

    def call_all() -> None:
        for function in given:
            function()

    return call_all


async def _kill(process: Process) -> None:
    process.kill()
    await process.wait()


async def while_running(processes: Mapping[str, Process], work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`. Raises `Failed` if one of `processes`, given by name, ends before that."""
    async with background(work) as done, background(_first_end(processes)) as ended:
        await asyncio.wait([done, ended], return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise Failed(f"{ended.result()} ended unexpectedly")
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
            await asyncio.sleep(_POLL_S)
