"""Opens the client of Valkey: for one server, for a group that Sentinel watches, or for a cluster."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from typing import Any, TypeVar, cast

from redis import DriverInfo
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis, RedisCluster
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from storage.availability import Availability
from storage.valkey.addresses import Addresses, location, parse, topology_of
from storage.valkey.client import VALKEY_ERRORS, Valkey
from storage.valkey.cluster import ClusterPipeline, Node
from storage.valkey.cluster_client import PipelinedCluster
from storage.valkey.groups import user_groups
from storage.valkey.pipeline import CommandPipeline
from streams.tasks import background
from streams.wire.errors import ValkeyError

_CONNECTIONS = 16
_ANSWER_S = 1.0
_ACQUIRE_S = 5.0
_BLOCKING_CONNECTIONS = 1024
_BLOCKING_ANSWER_S = 10.0

_UNKNOWN_OPTION = re.compile(r"unexpected keyword argument '(\w+)'")
"""Python's message for an unknown option of the URL, which redis-py passes to its connections."""
_LOST_TRANSPORT = "the handler is closed"
"""uvloop's message, in a `RuntimeError`, for a write to a transport that it has reported as lost."""


@asynccontextmanager
async def open_valkey(url: str, *, prefix: str = "parley:") -> AsyncIterator[Valkey]:
    """Open a client of `url`: `redis://…`, `unix://…`, `redis+cluster://…` or `redis+sentinel://…`.

    Commands are not retried: that is left to callers.
    """
    open_topology = {"single": _open_single, "sentinel": _open_sentinel, "cluster": _open_cluster}[topology_of(url)]
    async with AsyncExitStack() as stack:
        try:
            valkey = await stack.enter_async_context(open_topology(url, prefix))
        except (ValueError, TypeError, AttributeError) as error:  # An option is unknown or has a wrong value.
            cause = f"{_wrong_option(error)} (REDIS_URL: {location(url)})"
            raise ValkeyError(f"REDIS_URL cannot be used: {cause}") from error
        yield valkey


@asynccontextmanager
async def _open_single(url: str, prefix: str) -> AsyncIterator[Valkey]:
    pools = [
        _reporting_losses(
            BlockingConnectionPool.from_url(
                url, **_options(answer_s), max_connections=connections, timeout=_ACQUIRE_S
            )
        )
        for answer_s, connections in ((_ANSWER_S, _CONNECTIONS), (_BLOCKING_ANSWER_S, _BLOCKING_CONNECTIONS))
    ]
    async with _opened(url, prefix, *pools, fails_over=False) as valkey:
        yield valkey


@asynccontextmanager
async def _open_sentinel(url: str, prefix: str) -> AsyncIterator[Valkey]:
    """Each connection asks the Sentinels for the primary before it connects."""
    addresses = parse(url)
    async with AsyncExitStack() as stack:
        pools = []
        for answer_s, connections in ((_ANSWER_S, _CONNECTIONS), (_BLOCKING_ANSWER_S, _BLOCKING_CONNECTIONS)):
            sentinel = _sentinel(addresses)
            for client in sentinel.sentinels:
                stack.push_async_callback(client.aclose)
            pool = _WaitingSentinelPool(  # type: ignore[no-untyped-call]
                addresses.service,
                sentinel,
                **_sentinel_connections(addresses),
                **_options(answer_s),
                max_connections=connections,
                timeout=_ACQUIRE_S,
            )
            pools.append(_reporting_losses(pool))
        async with _opened(url, prefix, *pools, fails_over=True) as valkey:
            yield valkey


class _WaitingSentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """A pool of connections to the primary.

    Like in the pool of a single server, commands wait for a connection: if it refused them, Valkey would seem
    unavailable.
    """


@asynccontextmanager
async def _opened(
    url: str, prefix: str, pool: ConnectionPool, blocking_pool: ConnectionPool, *, fails_over: bool
) -> AsyncIterator[Valkey]:
    connection = pool.make_connection()  # type: ignore[no-untyped-call]
    availability = Availability("valkey", location=location(url))
    commands = CommandPipeline(connection, answer_s=_ANSWER_S, availability=availability)

    @asynccontextmanager
    async def subscribed(channel: str) -> AsyncIterator[PubSub]:
        async with client.pubsub() as pubsub:
            await pubsub.subscribe(channel)
            yield pubsub

    async with Redis.from_pool(pool) as client, Redis.from_pool(blocking_pool) as blocking:
        try:
            yield Valkey(
                client,
                prefix,
                blocking=blocking,
                commands=commands,
                subscribed=subscribed,
                fails_over=fails_over,
            )
        finally:
            await commands.close()


@asynccontextmanager
async def _open_cluster(url: str, prefix: str) -> AsyncIterator[Valkey]:
    addresses = parse(url)
    topology = RedisCluster(**_cluster_options(addresses, _ANSWER_S)).nodes_manager
    connection_class = addresses.options.get("connection_class", Connection)
    options = {name: value for name, value in addresses.options.items() if name != "connection_class"}

    def connection_to(node: Node) -> AbstractConnection:
        host, port = node
        connection: AbstractConnection = connection_class(host=host, port=port, **options, **_options(_ANSWER_S))
        return connection

    connection_to(addresses.hosts[0])  # An option that is wrong is found here.
    commands = ClusterPipeline(topology, connection_to, answer_s=_ANSWER_S)  # Only this topology is read by hand.
    client = PipelinedCluster(commands.call, **_cluster_options(addresses, _ANSWER_S))
    blocking = RedisCluster(**_cluster_options(addresses, _BLOCKING_ANSWER_S))

    @asynccontextmanager
    async def subscribed(channel: str) -> AsyncIterator[PubSub]:
        """Subscribe at the node that owns the channel's slot. The node ends that when the slot moves."""
        try:
            host, port = await commands.find_node(channel)
            pool = ConnectionPool(
                connection_class=connection_class, host=host, port=port, **options, **_options(_ANSWER_S)
            )
            async with Redis.from_pool(_reporting_losses(pool)) as node, node.pubsub() as pubsub:
                await pubsub.ssubscribe(channel)
                yield pubsub
        except VALKEY_ERRORS:
            commands.outdate()
            raise

    async with _closing(client), _closing(blocking), background(commands.keep_topology()):
        try:
            yield Valkey(
                cast("Redis", client),
                prefix,
                blocking=cast("Redis", blocking),
                commands=commands,
                subscribed=subscribed,
                groups=user_groups(),
                fails_over=True,
            )
        finally:
            await commands.close()


@asynccontextmanager
async def _closing(client: RedisCluster) -> AsyncIterator[None]:
    """Close a client, also while it reads the topology again: then `RedisCluster.aclose` does nothing."""
    try:
        yield
    finally:
        await client.aclose()
        await client.nodes_manager.aclose()
        await client.nodes_manager.aclose("startup_nodes")


def _cluster_options(addresses: Addresses, answer_s: float) -> dict[str, Any]:
    """Return the options of redis-py's client. If a part of the cluster is lost, it serves the rest."""
    options = dict(addresses.options)
    is_tls = options.pop("connection_class", None) is SSLConnection
    return {
        "startup_nodes": [ClusterNode(host, port) for host, port in addresses.hosts],
        "require_full_coverage": False,
        "ssl": is_tls,
        **options,
        **_options(answer_s),
        "max_connections": _BLOCKING_CONNECTIONS,
    }


def _sentinel(addresses: Addresses) -> Sentinel:
    options = dict(addresses.sentinel_options or {})
    is_tls = options.pop("connection_class", None) is SSLConnection
    return Sentinel(  # type: ignore[no-untyped-call]
        addresses.hosts, sentinel_kwargs={**options, **_options(_ANSWER_S), "ssl": is_tls}
    )


def _sentinel_connections(addresses: Addresses) -> dict[str, Any]:
    is_tls = addresses.options.get("connection_class") is SSLConnection
    return {
        **addresses.options,
        "connection_class": SentinelManagedSSLConnection if is_tls else SentinelManagedConnection,
    }


def _options(answer_s: float) -> dict[str, Any]:
    """Return the options of all connections."""
    return {
        "driver_info": _driver(),
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": answer_s,
        "socket_connect_timeout": _ANSWER_S,
    }


@cache
def _driver() -> DriverInfo:
    """Return what connections report about their client. By default, each connection reads it from files."""
    return DriverInfo()


def _wrong_option(error: Exception) -> str:
    if isinstance(error, ValueError):
        return str(error)
    unknown = _UNKNOWN_OPTION.search(str(error))
    return f"unknown option {unknown[1]}" if unknown else "an option has a wrong value"


P = TypeVar("P", bound=ConnectionPool)


def _reporting_losses(pool: P) -> P:
    """Have connections of `pool` raise `ConnectionError` if the connection was lost before a command.

    redis-py does not check the transport before it writes, and uvloop then raises `RuntimeError`. Our own protocols
    and those of asyncpg and aiohttp check it.
    """
    base: type[AbstractConnection] = pool.connection_class

    class LossReportingConnection(base):  # type: ignore[misc,valid-type]
        async def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # noqa: FBT001, FBT002
            try:
                await super().send_packed_command(command, check_health)
            except RuntimeError as error:
                if _LOST_TRANSPORT not in str(error):
                    raise
                raise RedisConnectionError("the connection was lost") from error

    pool.connection_class = LossReportingConnection
    return pool
