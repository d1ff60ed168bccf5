"""The testbed of the kills: the sandbox as both platforms, a server of several processes, and workers."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from app.settings import Settings
from app.stores import open_stores
from bench.deployment import RAISED_LIMITS, free_port
from bench.machine import family
from deploy.local import development
from deploy.running import Failed, running, until_ready
from deploy.sandbox import sandbox
from deploy.seeds import seed
from deploy.stores import Stores, embedded_stores
from deploy.webhooks import register_webhooks
from storage.operators.audit import COMMAND
from storage.postgres.migrate import migrate
from streams.tasks import background

APP = "default"
MERCHANT = "sandbox-app"
"""The id of the app at the sandbox's PayPal."""
SHARE_QUOTA = 5
_ROOT = Path(__file__).parents[2]
_READY_S = 120
_STOP_S = 60
_STARTS = 5
"""How often a parent is started: the listeners of the last one may not be closed yet."""


@dataclass
class KillsTestbed:
    """The running testbed. `log` is the output of all processes of the server and of the workers."""

    url: str
    sandbox_url: str
    stores: Stores
    env: Mapping[str, str]
    log: Path
    parent: Process
    workers: list[Process]
    _stack: AsyncExitStack

    def children(self) -> list[int]:
        """Return the ids of the processes of the server, except that of the parent."""
        return family(self.parent.pid)[1:]

    def kill_child(self, pid: int) -> None:
        """Kill a process of the server. The parent starts another."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    async def revive(self) -> bool:
        """Start another parent if that has ended. Return whether it had.

        It ends by itself if one of its first processes is killed before that has ever been ready.
        """
        if has_ended := self.parent.returncode is not None:
            self.parent = await self._serve()
        return has_ended

    async def kill_worker(self, number: int) -> None:
        """Kill a worker, and start another."""
        _kill(self.workers[number])
        await self.workers[number].wait()
        self.workers[number] = await self._start("worker")

    async def kill_parent(self) -> None:
        """Kill the parent, whose processes end then, and start another."""
        _kill(self.parent)
        await self.parent.wait()
        self.parent = await self._serve()

    async def stop(self) -> Sequence[int | None]:
        """Stop the server and the workers with SIGTERM. Return their exit codes, `None` if one did not exit."""
        return await asyncio.gather(*(_stop(process) for process in (self.parent, *self.workers)))

    def left(self) -> list[int]:
        """Return the ids of the processes of the server and of the workers that still run."""
        return [pid for pid in _pids() if _output_of(pid) == self.log]

    async def start(self, *, workers: int) -> None:
        self.parent = await self._serve()
        self.workers = [await self._start("worker") for _ in range(workers)]

    async def _serve(self) -> Process:
        for _ in range(_STARTS):
            process = await self._start("serve")
            async with background(until_ready(self.url)) as ready, background(process.wait()) as ended:
                await asyncio.wait([ready, ended], timeout=_READY_S, return_when=asyncio.FIRST_COMPLETED)
                if ready.done() and not ended.done():
                    return process
            await asyncio.sleep(1)
        raise Failed(f"the server was not ready, see {self.log}")

    async def _start(self, command: str) -> Process:
        output = self._stack.enter_context(self.log.open("ab"))
        arguments = [sys.executable, "-m", "app", command]
        process: Process = await self._stack.enter_async_context(
            running(arguments, stop_s=_STOP_S, env=dict(self.env), cwd=_ROOT, stdout=output, stderr=output)
        )
        return process


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _output_of(pid: int) -> Path | None:
    """Return the file to which a process writes. `None`: it has ended, or belongs to another user."""
    try:
        return Path(f"/proc/{pid}/fd/1").readlink()
    except OSError:
        return None


async def _stop(process: Process) -> int | None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(_STOP_S):
            return await process.wait()
    except TimeoutError:
        return None


@asynccontextmanager
async def open_testbed(folder: Path, *, processes: int, workers: int, lost: float) -> AsyncIterator[KillsTestbed]:
    """Run the testbed until the block ends. `lost`: the share of webhooks that both platforms lose.

    Data goes to `folder/data`, the output of the server and of the workers to `folder/server.log`.
    """
    data_dir, log = folder / "data", folder / "server.log"
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(embedded_stores(data_dir))
        platforms = await stack.enter_async_context(sandbox(folder / "sandbox.log"))
        await migrate(stores.database_url)
        env = development({"PARLEY_DATA_DIR": str(data_dir), "PORT": str(free_port()), "PATH": os.defpath})
        env |= {
            "DATABASE_URL": stores.database_url,
            "REDIS_URL": stores.redis_url,
            "PARLEY_SANDBOX_URL": platforms.url,
            "PARLEY_INBOX_URL": platforms.inbox_url,
            "PARLEY_PROCESSES": str(processes),
            "PARLEY_CONNECTIONS_PER_ADDRESS": "1000000",
        }
        url = f"http://127.0.0.1:{env['PORT']}"
        await _configure(env, sandbox_url=platforms.url, server_url=url)
        await _lose_webhooks(platforms.url, share=lost)
        # Processes are started anew during the run, so they belong to a stack that is closed before the stores.
        started = await stack.enter_async_context(AsyncExitStack())
        testbed = KillsTestbed(url, platforms.url, stores, env, log, platforms.process, [], started)
        await testbed.start(workers=workers)
        yield testbed


async def _configure(env: Mapping[str, str], *, sandbox_url: str, server_url: str) -> None:
    """Write the configs of the development app, with all limits raised, and register its webhooks."""
    more: dict[tuple[str, str], Any] = {
        ("limits", "default"): RAISED_LIMITS,
        ("share_groups", "pro"): {"quota": SHARE_QUOTA, "platforms": ["cardpay", "walletpay"]},
    }
    async with open_stores(Settings.from_env(env)) as stores:
        await seed(stores.configs, env)
        for (kind, name), value in more.items():
            await stores.configs.put(APP, kind, name, value, author="bench", origin=COMMAND)
        await register_webhooks(stores.configs, sandbox_url=sandbox_url, server_url=server_url)


async def _lose_webhooks(sandbox_url: str, *, share: float) -> None:
    async with ClientSession(raise_for_status=True) as http:
        faults = {"fault": "lost", "rate": share}
        await http.post(f"{sandbox_url}/stripe/_sandbox/webhooks", json=faults)
        await http.post(f"{sandbox_url}/paypal/_control/deliveries", json={"client_id": MERCHANT, **faults})
