"""The testbed of a soak: stores that can be killed and paused, a failing vendor, two servers."""

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

from bench.deployment import free_port, make_tokens, put_all
from bench.machine import family
from bench.soak.callers import Lengths
from bench.soak.schedule import Action
from deploy.local import development
from deploy.running import Failed, running, until_ready, while_running
from deploy.stores import Stores, embedded_stores
from storage.postgres.migrate import migrate

_ROOT = Path(__file__).parents[2]
_READY_S = 60
_END_TIMEOUT_S = 10
_SERVER_STOPS_S = 150
DRAIN_S = 90
"""Longer than the longest stream, so that replacing a process breaks off no stream."""


@dataclass
class SoakTestbed:
    """The running testbed. `parent` is the parent process of the server whose processes are replaced.

    `long_lived` is a second server on the same stores: one process that is never replaced, whose memory shows
    leaks. `log` is the output of all processes of both servers. `vendor_faults` lists the vendor's failing calls.
    """

    url: str
    long_lived_url: str
    tokens: list[str]
    stores: Stores
    processes: int
    parent: Process
    long_lived: Process
    log: Path
    vendor_faults: Path
    _data_dir: Path
    _running: dict[str, Process]
    _stack: AsyncExitStack

    def children(self) -> list[int]:
        """Return the ids of the processes that are replaced, oldest first."""
        return sorted(family(self.parent.pid)[1:], key=_started_at)

    def store_pid(self, name: str) -> int:
        return self._running[name].pid

    def replace_processes(self) -> None:
        self.parent.send_signal(signal.SIGHUP)

    async def disturb(self, store: str, action: Action, *, for_s: float) -> None:
        """Kill or pause a store for `for_s`. Return when it runs again."""
        if action == "pause":
            pids = family(self.store_pid(store))
            try:
                _signal(pids, signal.SIGSTOP)
                await asyncio.sleep(for_s)
            finally:
                _signal(pids[::-1], signal.SIGCONT)
            return
        process = self._running[store]
        pids = family(process.pid)
        _signal(pids, signal.SIGKILL)
        await process.wait()
        async with asyncio.timeout(_END_TIMEOUT_S):
            while any(map(_is_alive, pids)):  # noqa: ASYNC110 - no event for the end of other processes
                await asyncio.sleep(0.05)
        await asyncio.sleep(for_s)
        if action == "empty":
            shutil.rmtree(self._data_dir / "valkey")
        self._running[store] = await self._stack.enter_async_context(self.stores.restarts[store]())

    async def stop_servers(self) -> list[int | None]:
        """Stop both servers with SIGTERM. Return the exit code of each, or None if it did not exit in time."""
        return await asyncio.gather(_stop(self.parent), _stop(self.long_lived))


async def _stop(server: Process) -> int | None:
    if server.returncode is None:
        server.terminate()
    try:
        async with asyncio.timeout(_SERVER_STOPS_S):
            return await server.wait()
    except TimeoutError:
        return None


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _is_alive(pid: int) -> bool:
    """Return whether a process is running. A zombie has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _started_at(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return 0


@asynccontextmanager
async def open_testbed(
    folder: Path, *, users: int, processes: int, lengths: Lengths, failing: float, seed: int
) -> AsyncIterator[SoakTestbed]:
    """Run the testbed until the block ends. Data goes to `folder/data`, the servers' log to `folder/server.log`."""
    data_dir, log, vendor_faults = folder / "data", folder / "server.log", folder / "vendor-faults.jsonl"
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(embedded_stores(data_dir))
        restarted_stores = await stack.enter_async_context(AsyncExitStack())
        command = [
            sys.executable,
            "-m",
            "bench.upstream",
            "--failing",
            str(failing),
            "--seed",
            str(seed),
            "--hanging",
            "--faults",
            str(vendor_faults.resolve()),
        ]
        vendor = await stack.enter_async_context(running(command, stdout=PIPE, cwd=_ROOT))
        assert vendor.stdout is not None, "not a pipe"
        vendor_url = f"http://127.0.0.1:{int(await vendor.stdout.readline())}"
        await migrate(stores.database_url)
        env = development({"PARLEY_DATA_DIR": str(data_dir), "PORT": str(free_port()), "PATH": os.defpath})
        env |= {"DATABASE_URL": stores.database_url, "REDIS_URL": stores.redis_url}
        env |= {"PARLEY_PROCESSES": str(processes), "PARLEY_DRAIN_TIMEOUT_S": str(DRAIN_S)}
        parent, url = await _serve(stack, env, log)
        long_lived_env = {**env, "PARLEY_PROCESSES": "1", "PORT": str(free_port())}
        long_lived, long_lived_url = await _serve(stack, long_lived_env, log)
        await put_all(url, env["PARLEY_ADMIN_TOKEN"], soak_configs(vendor_url, lengths))
        tokens = await make_tokens(users, env, folder / "users")
        yield SoakTestbed(
            url,
            long_lived_url,
            tokens,
            stores,
            processes,
            parent,
            long_lived,
            log,
            vendor_faults,
            data_dir.resolve(),
            dict(stores.processes),
            restarted_stores,
        )


async def _serve(stack: AsyncExitStack, env: Mapping[str, str], log: Path) -> tuple[Process, str]:
    """Start a server that runs until `stack` is closed. Return its process and URL when it is ready."""
    output = stack.enter_context(log.open("ab"))
    command = [sys.executable, "-m", "app", "serve"]
    server = await stack.enter_async_context(
        running(command, stop_s=_SERVER_STOPS_S, env=env, cwd=_ROOT, stdout=output, stderr=output)
    )
    url = f"http://127.0.0.1:{env['PORT']}"
    try:
        await while_running({"the server": server}, asyncio.wait_for(until_ready(url), _READY_S))
    except (Failed, TimeoutError):
        _print_log(log)
        raise
    return server, url


def _print_log(log: Path) -> None:
    sys.stderr.write(log.read_text())


def soak_configs(vendor_url: str, lengths: Lengths) -> dict[str, Any]:
    """Return the configs of the app, with default limits and each strategy once per vendor account.

    If an answer from account `one` breaks off, the next strategy restarts it (`on_break` is `restart`). If an
    answer from account `two` breaks off, the stream ends with `error`.
    """
    configs: dict[str, Any] = {"apps/default": {"title": "Soak"}, "auth/default": {"require_sign": False}}
    waits = {"connect_s": 3, "first_output_s": 4, "between_s": 10}
    for name, on_break in (("one", "restart"), ("two", "fail")):
        shared = {"base_url": f"{vendor_url}/v1", "api_key": "bench", "concurrency": 2000}
        configs[f"vendor_accounts/chat-{name}"] = {"platform": "vendor_b_llm", **shared}
        configs[f"vendor_accounts/audio-{name}"] = {"platform": "vendor_b_audio", **shared}
        audio = {"account": f"audio-{name}", "waits": waits}
        configs[f"recognition/{name}"] = {**audio, "model": "whisper-1"}
        configs[f"speech/{name}-{lengths.speech}"] = {
            **audio,
            "model": lengths.speech,
            "audio_format": "wav",
            "min_realtime_factor": 0,
            "options": {"stream_format": "audio"},
        }
        for model in lengths.chat:
            chat = {"account": f"chat-{name}", "model": model, "waits": waits}
            configs[f"conversation/{name}-{model}"] = {"chat": chat, "recognition": name, "on_break": on_break}
    return configs
