"""Commands to a cluster: each is sent over the pipelined connection to the node that owns its slot.

redis-py's cluster client reads the topology. Its table of slots is copied, because it looks up a node per command
with a dozen calls. A node that has moved or failed is noticed by the errors of commands; then the topology is read
again, at most a few times a second, until it has changed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import structlog
from redis.asyncio.cluster import NodesManager
from redis.asyncio.connection import AbstractConnection
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import AskError, ClusterDownError, MovedError, RedisClusterException, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from storage.availability import Availability
from storage.valkey.pipeline import CommandPipeline, Word
from streams.tasks import stopping

log = structlog.get_logger()

_MOST_REDIRECTIONS = 8
_TRY_AGAIN_S = 0.05
_REFRESH_S = 0.2
_REFRESH_WITHIN_S = 5
_FAILED = (RedisConnectionError, RedisTimeoutError, ClusterDownError, OSError)
_SCRIPTS = {"EVAL", "EVALSHA"}

Node = tuple[str, int]


class ClusterPipeline:
    """The connections to all primaries. Its methods are those of `CommandPipeline`.

    A command is repeated on another node only if the node that it was sent to has not executed it.
    """

    def __init__(
        self, topology: NodesManager, connection_to: Callable[[Node], AbstractConnection], *, answer_s: float
    ) -> None:
        self.lost = asyncio.Event()
        """Set when a connection is lost or cannot be opened, and when slots have moved."""
        self._topology = topology
        self._connection_to = connection_to
        self._answer_s = answer_s
        self._nodes: dict[Node, CommandPipeline] = {}
        self._owners: list[CommandPipeline | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._outdated = asyncio.Event()
        self._reading = asyncio.Lock()
        self._times_read = 0
        self._failed_node: str | None = None

    def call(self, *command: Word) -> Awaitable[Any]:
        slot = _slot_of(command)
        owner = self._owners[slot]
        if owner is None:
            return self._find_owner_and_call(slot, command)
        return self._redirected(owner, owner.call(*command), slot, command)

    def losses(self, key: str) -> object:
        """Return a value that changes when data of the key's slot may have been lost: see `CommandPipeline`."""
        owner = self._owners[key_slot(key.encode())]
        return None if owner is None else (owner, owner.losses(key))

    async def ping(self) -> None:
        """Ask all primaries. Raises the error of the first that does not answer."""
        if None in self._owners:
            await self._read_topology()
        for owner in dict.fromkeys(self._owners):
            if owner is not None:
                await owner.ping()

    async def close(self) -> None:
        for pipeline in self._nodes.values():
            await pipeline.close()
        await self._topology.aclose()
        await self._topology.aclose("startup_nodes")

    async def keep_topology(self) -> None:
        """Read the topology again when it is outdated, until cancelled."""
        while not stopping():
            await self._outdated.wait()
            self._outdated.clear()
            try:
                await self._read_topology()
            except (RedisClusterException, *_FAILED) as error:
                log.debug("valkey.topology_unread", error=str(error))
                self._outdated.set()
            await asyncio.sleep(_REFRESH_S)

    def node_of(self, key: str) -> Node | None:
        """Return the node that owns the slot of a key, if it is known."""
        owner = self._owners[key_slot(key.encode())]
        return None if owner is None else self._place(owner)

    async def find_node(self, key: str) -> Node:
        """Return the node that owns the slot of a key. Reads the topology if it is unknown or outdated."""
        node = None if self._outdated.is_set() else self.node_of(key)
        if node is None:
            await self._read_topology()
            node = self.node_of(key)
        if node is None:
            raise ClusterDownError("no node owns the slot")
        return node

    def outdate(self) -> None:
        """Have the topology read again, because a node did not behave as expected."""
        self._outdated.set()

    async def _find_owner_and_call(self, slot: int, command: tuple[Word, ...]) -> Any:
        await self._read_topology()
        owner = self._owners[slot]
        if owner is None:
            self._outdated.set()
            raise ClusterDownError("no node owns the slot")
        return await self._redirected(owner, owner.call(*command), slot, command)

    async def _redirected(
        self, owner: CommandPipeline, answer: Awaitable[Any], slot: int, command: tuple[Word, ...]
    ) -> Any:
        """Return the answer, after following redirections to other nodes."""
        redirections = 0
        while True:
            try:
                return await answer
            except (AskError, TryAgainError) as redirection:
                redirections += 1
                if redirections > _MOST_REDIRECTIONS:
                    self._outdated.set()
                    if isinstance(redirection, TryAgainError):
                        raise
                    raise ClusterDownError("a command was redirected too often") from redirection
                owner, answer = await self._follow(redirection, owner, slot, command)
            except _FAILED:
                self._failed_node = _name(self._place(owner))
                self._outdated.set()
                raise

    async def _follow(
        self, redirection: AskError | TryAgainError, owner: CommandPipeline, slot: int, command: tuple[Word, ...]
    ) -> tuple[CommandPipeline, Awaitable[Any]]:
        """Send the command where `redirection` says. Returns the owner of the slot, and the awaitable answer."""
        if isinstance(redirection, MovedError):
            owner = self._owners[slot] = self._node(self._address(redirection, owner))
            self._outdated.set()
            self.lost.set()
        elif isinstance(redirection, AskError):
            return owner, _ask(self._node(self._address(redirection, owner)), command)
        else:  # A part of the keys is still being moved.
            await asyncio.sleep(_TRY_AGAIN_S)
        return owner, owner.call(*command)

    def _address(self, redirection: AskError, owner: CommandPipeline) -> Node:
        """Return the node of a redirection. An empty host is that of the node that redirects."""
        return redirection.host or self._place(owner)[0], redirection.port

    def _place(self, owner: CommandPipeline) -> Node:
        """Return the address of a node. It is lost when the topology no longer has the node."""
        return next((node for node, pipeline in self._nodes.items() if pipeline is owner), ("", 0))

    def _node(self, node: Node) -> CommandPipeline:
        pipeline = self._nodes.get(node)
        if pipeline is None:
            pipeline = self._nodes[node] = CommandPipeline(
                self._connection_to(node),
                answer_s=self._answer_s,
                availability=Availability("valkey", location=_name(node)),
                lost=self.lost,
            )
        return pipeline

    async def _read_topology(self) -> None:
        """Read the topology, once for all callers that wait for it."""
        before = self._times_read
        async with self._reading:
            if self._times_read != before:
                return
            async with asyncio.timeout(_REFRESH_WITHIN_S):
                await self._topology.initialize(last_failed_node_name=self._failed_node)
            self._times_read += 1
            await self._take_over(self._topology.slots_cache)

    async def _take_over(self, slots: Mapping[int, Sequence[Any]]) -> None:
        owners: list[CommandPipeline | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for slot, nodes in slots.items():
            owners[slot] = self._node((nodes[0].host, int(nodes[0].port)))
        if any(old is not None and old is not new for old, new in zip(self._owners, owners, strict=True)):
            self.lost.set()
        self._owners = owners
        known = {(node.host, int(node.port)) for node in self._topology.nodes_cache.values()}
        in_use = set(owners)
        for node, pipeline in list(self._nodes.items()):
            if pipeline not in in_use:
                pipeline.availability.forget()
                if node not in known:
                    await self._nodes.pop(node).close()


def _slot_of(command: Sequence[Word]) -> int:
    """Return the slot of a command: that of the first key of a script, or else of the first argument."""
    key = command[3 if command[0] in _SCRIPTS else 1]
    return key_slot(key if isinstance(key, bytes) else str(key).encode())


async def _ask(importing: CommandPipeline, command: tuple[Word, ...]) -> Any:
    """Send a command about a slot that a node is importing. ASKING applies to the next command on a connection."""
    _, answer = await asyncio.gather(importing.call("ASKING"), importing.call(*command))
    return answer


def _name(node: Node) -> str:
    host, port = node
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
