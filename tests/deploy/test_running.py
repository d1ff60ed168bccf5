"""Child processes of `make run` end with their block, and failures are reported."""

import asyncio
import signal
import sys

import pytest

from deploy.running import Failed, running, while_running

_DEAF = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: print("asked to end", flush=True))
print("up", flush=True)
time.sleep(60)
"""


async def test_the_process_ends_with_its_block():
    async with running([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        assert process.returncode is None
    assert process.returncode == -signal.SIGTERM


async def test_process_that_does_not_listen_is_killed():
    async with running([sys.executable, "-c", _DEAF], stop_s=0.1, stdout=asyncio.subprocess.PIPE) as process:
        await process.stdout.readline()
    assert process.returncode == -signal.SIGKILL


async def test_a_second_cancellation_kills_the_process_immediately():
    up = asyncio.Event()
    processes = []

    async def work() -> None:
        async with running([sys.executable, "-c", _DEAF], stop_s=60, stdout=asyncio.subprocess.PIPE) as process:
            processes.append(process)
            await process.stdout.readline()
            up.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work())
        await up.wait()
        task.cancel()
        assert await processes[0].stdout.readline() == b"asked to end\n"
        assert not task.done()
        task.cancel()
    assert processes[0].returncode == -signal.SIGKILL


async def test_work_is_cancelled_when_its_process_exits():
    async with running([sys.executable, "-c", ""]) as process:
        with pytest.raises(Failed, match="the baker ended unexpectedly"):
            await while_running({"the baker": process}, asyncio.Event().wait())


async def test_completed_work_returns_its_result():
    async def work() -> int:
        return 7

    async with running([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        assert await while_running({"the baker": process}, work()) == 7
