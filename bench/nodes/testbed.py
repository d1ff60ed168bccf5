"""The testbed: stores, a vendor, nodes in namespaces of their own, and HAProxy with the shipped configuration."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

from bench.deployment import DeploymentSpec, make_app, make_tokens, put_all, strategies
from bench.nodes.network import Network, address, hub
from bench.nodes.proxy import node_proxy, store_relay
from deploy.local import development
from deploy.running import Failed, running, until_ready, while_running
from deploy.stores import Stores, embedded_stores
from deploy.valkey_cluster import valkey_cluster
from storage.postgres.migrate import migrate

BOARD = "race"
_PORT = 8080
_ROOT = Path(__file__).parents[2]
_READY_S = 60


@dataclass
class NodesTestbed:
    """The running testbed. Clients use `url`, the address of the proxy. `calls`: the list of the vendor's calls."""

    url: str
    tokens: list[str]
    network: Network
    stores: Stores
    log: Path
    calls: Path
    drain_s: float
    _env: Mapping[str, str]
    _processes: dict[int, Process]
    _stack: AsyncExitStack

    @property
    def nodes(self) -> list[int]:
        return sorted(self._processes)

    async def start(self, node: int) -> None:
        """Start the server of a node, and return when it is ready."""
        output = self._stack.enter_context(self.log.open("ab"))
        process = await self._stack.enter_async_context(
            running(
                [sys.executable, "-m", "app", "serve"],
                stop_s=self.drain_s + 30,
                prepare=self.network.enter(node),
                env=self._env,
                cwd=_ROOT,
                stdout=output,
                stderr=output,
            )
        )
        self._processes[node] = process
        await while_running({f"node {node}": process}, asyncio.wait_for(until_ready(node_url(node)), _READY_S))

    async def drain(self, node: int) -> float:
        """Stop a node with SIGTERM. Return how long it took to end."""
        loop = asyncio.get_running_loop()
        begun, process = loop.time(), self._processes[node]
        process.terminate()
        if await process.wait() != 0:
            raise Failed(f"node {node} ended with an error, see {self.log}")
        return loop.time() - begun

    async def kill(self, node: int) -> None:
        self._processes[node].kill()
        await self._processes[node].wait()


def node_url(node: int) -> str:
    return f"http://{address('clients', node)}:{_PORT}"


@asynccontextmanager
async def open_testbed(
    folder: Path, *, nodes: int, users: int, model: str, drain_s: float, cluster: bool
) -> AsyncIterator[NodesTestbed]:
    """Run the testbed until the block ends. Data goes to `folder/data`, the nodes' log to `folder/nodes.log`."""
    data_dir, calls = folder / "data", folder / "calls.jsonl"
    network = Network(nodes)
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(embedded_stores(data_dir))
        await stack.enter_async_context(store_relay(folder, stores))
        await migrate(stores.database_url)
        redis_url = f"redis://{hub('valkey')}:6379"
        if cluster:
            valkey = await stack.enter_async_context(valkey_cluster(data_dir / "cluster", host=hub("valkey")))
            redis_url = valkey.url
        vendor_url = await _vendor(stack, calls)
        env = _environment(data_dir, redis_url=redis_url, drain_s=drain_s)
        started = await stack.enter_async_context(AsyncExitStack())
        log = folder / "nodes.log"
        testbed = NodesTestbed(
            f"http://{hub('clients')}", [], network, stores, log, calls, drain_s, env, {}, started
        )
        await testbed.start(0)
        await _configure(env["PARLEY_ADMIN_TOKEN"], model, vendor_url)
        async with asyncio.TaskGroup() as tasks:
            for node in range(1, nodes):
                tasks.create_task(testbed.start(node))
        backends = {f"parley{node + 1}": f"{address('clients', node)}:{_PORT}" for node in range(nodes)}
        proxy = await stack.enter_async_context(node_proxy(folder, backends))
        await while_running({"HAProxy": proxy}, asyncio.wait_for(until_ready(testbed.url), _READY_S))
        local = {**env, "DATABASE_URL": stores.database_url}
        testbed.tokens += await make_tokens(users, local, folder / "users")
        yield testbed


async def _vendor(stack: AsyncExitStack, calls: Path) -> str:
    host = hub("clients")
    command = [sys.executable, "-m", "bench.upstream", "--calls", str(calls), "--host", host]
    vendor = await stack.enter_async_context(running(command, stdout=PIPE, cwd=_ROOT))
    assert vendor.stdout is not None, "not a pipe"
    return f"http://{host}:{int(await vendor.stdout.readline())}"


def _environment(data_dir: Path, *, redis_url: str, drain_s: float) -> dict[str, str]:
    env = development({"PARLEY_DATA_DIR": str(data_dir), "PORT": str(_PORT), "PATH": os.defpath})
    return env | {
        "HOST": "0.0.0.0",  # noqa: S104 - in a namespace of its own
        "DATABASE_URL": f"postgresql://parley@{hub('postgres')}:5432/postgres",
        "REDIS_URL": redis_url,
        "PARLEY_TRUSTED_PROXIES": f"{hub('clients')}/32",
        "PARLEY_DRAIN_TIMEOUT_S": str(drain_s),
        "PARLEY_DRAIN_NOTICE_S": "3",
    }


async def _configure(admin_token: str, model: str, vendor_url: str) -> None:
    """Write the configs of the app through the first node."""
    await make_app(node_url(0), admin_token)
    configs: dict[str, Any] = strategies(DeploymentSpec(frozenset({model})), vendor_url, "")
    await put_all(node_url(0), admin_token, {**configs, f"leaderboards/{BOARD}": {"size": 1000}})
