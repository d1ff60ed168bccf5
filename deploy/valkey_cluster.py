"""Runs a Valkey Cluster on loopback, for tests and measurements on one machine."""

import asyncio
import random
import socket
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import REDIS_CLUSTER_HASH_SLOTS
from redis.exceptions import RedisError

from deploy.running import Failed, running
from deploy.stores import valkey_server

_HOST = "127.0.0.1"
_LOG = "valkey.log"
_READY_S = 60
_POLL_S = 0.05


@dataclass(slots=True)
class ClusterNode:
    """A node. `process` is the one that runs or ran last."""

    port: int
    bus_port: int
    folder: Path
    process: Process | None = None


@dataclass(slots=True)
class ValkeyCluster:
    """A running cluster."""

    nodes: list[ClusterNode]
    node_timeout_ms: int
    _stack: AsyncExitStack = field(repr=False)
    host: str = _HOST

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(f'{self.host}:{node.port}' for node in self.nodes)}"

    async def ask(self, node: ClusterNode, *command: str | int) -> Any:
        """Return the answer of one node."""
        async with _client(self.host, node) as client:
            return await client.execute_command(*command)  # type: ignore[no-untyped-call]

    async def primaries(self) -> dict[str, ClusterNode]:
        """Return the nodes that own slots by their ids, as a node that runs sees it."""
        by_port = {node.port: node for node in self.nodes}
        found = {}
        for line in (await self._topology()).splitlines():
            (
                name,
                address,
                flags,
                *_,
            ) = line.split()
            slots = line.split()[8:]
            if "master" in flags and "fail" not in flags.split(",") and slots:
                found[name] = by_port[int(address.partition("@")[0].rpartition(":")[2])]
        return found

    async def replica_of(self, primary: str) -> ClusterNode:
        """Return the replica of a primary, by the primary's id."""
        by_port = {node.port: node for node in self.nodes}
        for line in (await self._topology()).splitlines():
            words = line.split()
            if words[3] == primary and "fail" not in words[2].split(","):
                return by_port[int(words[1].partition("@")[0].rpartition(":")[2])]
        raise Failed(f"{primary} has no replica")

    async def owner_of(self, slot: int) -> ClusterNode:
        by_port = {node.port: node for node in self.nodes}
        for begin, end, primary, *_ in await self._slots():
            if begin <= slot <= end:
                return by_port[primary[1]]
        raise Failed(f"no node owns slot {slot}")

    async def kill(self, node: ClusterNode) -> None:
        assert node.process is not None, "the node was started"
        node.process.kill()
        await node.process.wait()

    async def start(self, node: ClusterNode) -> None:
        """Start a node that was killed, or a new one."""
        node.process = await self._stack.enter_async_context(_node(self.host, node, self.node_timeout_ms))
        await _until(lambda: self._answers(node))

    async def _answers(self, node: ClusterNode) -> Any:
        if node.process is not None and node.process.returncode is not None:
            raise Failed(f"a node has ended: {node.folder / _LOG}")
        return await self.ask(node, "PING")

    async def add(self, folder: Path) -> ClusterNode:
        """Add a primary without slots."""
        with ExitStack() as choosing:
            node = _new_node(self.host, folder, choosing)
        self.nodes.append(node)
        await self.start(node)
        await self.ask(self.nodes[0], "CLUSTER", "MEET", self.host, node.port, node.bus_port)
        await self.whole()
        return node

    async def move(self, slot: int, target: ClusterNode, *, batch: int = 100) -> None:
        """Move a slot with its keys to another primary, as a resharding tool does."""
        source = await self.owner_of(slot)
        source_id, target_id = [(await self.ask(node, "CLUSTER", "MYID")).decode() for node in (source, target)]
        await self.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        await self.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        while keys := await self.ask(source, "CLUSTER", "GETKEYSINSLOT", slot, batch):
            names = [key.decode() for key in keys]
            await self.ask(source, "MIGRATE", self.host, target.port, "", 0, 5000, "KEYS", *names)
        for node in (target, source, *(await self.primaries()).values()):
            await self.ask(node, "CLUSTER", "SETSLOT", slot, "NODE", target_id)

    async def whole(self) -> None:
        """Wait until all running nodes agree that all slots are served."""

        async def agree() -> bool:
            answers = [
                await self.ask(node, "CLUSTER", "INFO")
                for node in self.nodes
                if node.process is not None and node.process.returncode is None
            ]
            known = {answer.decode().partition("cluster_known_nodes:")[2].split()[0] for answer in answers}
            return len(known) == 1 and all("cluster_state:ok" in answer.decode() for answer in answers)

        await _until(agree)

    async def _topology(self) -> str:
        answer = await self._ask_any("CLUSTER", "NODES")
        return answer.decode() if isinstance(answer, bytes) else str(answer)

    async def _slots(self) -> Any:
        return await self._ask_any("CLUSTER", "SLOTS")

    async def _ask_any(self, *command: str) -> Any:
        for node in self.nodes:
            if node.process is not None and node.process.returncode is None:
                return await self.ask(node, *command)
        raise Failed("no node runs")


@asynccontextmanager
async def valkey_cluster(
    folder: Path, *, primaries: int = 3, replicas: bool = True, node_timeout_ms: int = 2000, host: str | None = None
) -> AsyncIterator[ValkeyCluster]:
    """Run a cluster during the block, with its data in `folder`. A failed primary is replaced after the timeout.

    `host`: an address of this machine that no other machine can reach, because the cluster has no password. Without
    it, the cluster has an address of its own.
    """
    async with AsyncExitStack() as stack:
        host = host or _own_host()
        with ExitStack() as choosing:  # Another process could take the ports afterwards, but not of an own address.
            numbers = range(primaries * (2 if replicas else 1))
            nodes = [_new_node(host, folder / str(number), choosing) for number in numbers]
        cluster = ValkeyCluster(nodes, node_timeout_ms, stack, host)
        for node in nodes:
            await cluster.start(node)
        for number, node in enumerate(nodes):
            await cluster.ask(node, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for number, node in enumerate(nodes[:primaries]):
            begin, end = (REDIS_CLUSTER_HASH_SLOTS * at // primaries for at in (number, number + 1))
            await cluster.ask(node, "CLUSTER", "ADDSLOTSRANGE", begin, end - 1)
        for node in nodes[1:]:
            await cluster.ask(nodes[0], "CLUSTER", "MEET", host, node.port, node.bus_port)
        await cluster.whole()
        for primary, replica in zip(nodes[:primaries], nodes[primaries:], strict=False):
            name = (await cluster.ask(primary, "CLUSTER", "MYID")).decode()
            await _until(lambda replica=replica, name=name: _accepted(cluster, replica, name))
        for replica in nodes[primaries:]:
            await _until(lambda replica=replica: _is_in_sync(cluster, replica))
        yield cluster


async def _accepted(cluster: ValkeyCluster, replica: ClusterNode, primary: str) -> bool:
    await cluster.ask(replica, "CLUSTER", "REPLICATE", primary)
    return True


async def _is_in_sync(cluster: ValkeyCluster, replica: ClusterNode) -> bool:
    return bool((await cluster.ask(replica, "INFO", "replication"))["master_link_status"] == "up")


def _own_host() -> str:
    """Return an address of this machine that hardly anyone else uses: only Linux has more than one."""
    host = ".".join(["127", *(str(random.randrange(1, 255)) for _ in range(3))])  # noqa: S311 - no secret
    with socket.socket() as listening, suppress(OSError):
        listening.bind((host, 0))
        return host
    return _HOST


def _new_node(host: str, folder: Path, choosing: ExitStack) -> ClusterNode:
    """Choose ports that are free, and differ from those that are chosen in `choosing`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    port, bus_port = (choosing.enter_context(socket.socket()) for _ in range(2))
    for listening in (port, bus_port):
        listening.bind((host, 0))
    return ClusterNode(port.getsockname()[1], bus_port.getsockname()[1], folder)


@asynccontextmanager
async def _node(host: str, node: ClusterNode, node_timeout_ms: int) -> AsyncIterator[Process]:
    options = {
        "bind": host,
        "protected-mode": "no",
        "port": node.port,
        "cluster-enabled": "yes",
        "cluster-port": node.bus_port,
        "cluster-announce-ip": host,
        "cluster-node-timeout": node_timeout_ms,
        "cluster-config-file": node.folder / "nodes.conf",
        "dir": node.folder,
        "appendonly": "no",
        "save": "",
        "repl-diskless-sync-delay": 0,
    }
    command = [
        str(valkey_server()),
        *(str(word) for name, value in options.items() for word in (f"--{name}", value)),
    ]
    with (node.folder / _LOG).open("ab") as output:
        async with running(command, stdout=output, stderr=output, cwd="/") as process:
            yield process


@asynccontextmanager
async def _client(host: str, node: ClusterNode) -> AsyncIterator[Redis]:
    async with Redis(host=host, port=node.port, retry=Retry(NoBackoff(), 0), socket_timeout=10) as client:
        yield client


async def _until(ask: Any) -> None:
    """Ask until the answer is true and no error."""
    try:
        async with asyncio.timeout(_READY_S):
            while True:
                try:
                    if await ask():
                        return
                except (OSError, RedisError):
                    pass
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise Failed(f"the cluster was not ready within {_READY_S} s") from None
