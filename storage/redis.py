"""Valkey (or Redis): the client, the names of its keys, and the one place where its faults become ours."""

from collections.abc import AsyncIterator, Awaitable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from storage.availability import Availability
from storage.pipeline import CommandPipeline, Word
from storage.valkey_causes import outage
from streams.wire.errors import StoreAway, StoreError

_CONNECTIONS = 64
_ANSWER_S = 1.0
_PLACE_S = 5.0
_WAITING_CONNECTIONS = 1024
_LONGEST_WAIT_S = 10.0

_LUA = Path(__file__).parent / "lua"


FAULTS = (RedisError, OSError)
"""What `call`, `run` and the clients raise."""


def fault(error: Exception) -> StoreError:
    """One of `FAULTS` as `redis_service`: 503 when Valkey cannot be used for now, 500 when it refused."""
    if (cause := outage(error)) is not None:
        return StoreAway(f"the cache {cause}", error_type="redis_service", retry_after_s=1)
    return StoreError("the cache refused a command", error_type="redis_service")


class map_errors:  # noqa: N801 - used as a function is
    """Turn a fault of Valkey into ours."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, FAULTS):
            raise fault(error) from error


@cache
def _lua(name: str) -> tuple[str, str]:
    """A script, and the digest that Valkey knows it by."""
    source = (_LUA / f"{name}.lua").read_text()
    return source, sha1(source.encode(), usedforsecurity=False).hexdigest()


class Valkey:
    """The client with the prefix that all keys of this deployment carry.

    `call` and `run` are for what every stream needs, and cheaper than `client`.
    """

    def __init__(self, client: Redis, prefix: str, *, blocking: Redis, pipeline: CommandPipeline) -> None:
        self.client = client
        self.call = pipeline.call
        self.lost = pipeline.lost
        """Set when the connection of `call` and `run` was lost or could not be opened. The heartbeat clears it."""
        self.blocking = blocking
        """For commands that wait at the server: on connections of their own, which they hold meanwhile."""
        self._prefix = prefix

    def key(self, tag: str, *parts: str) -> str:
        """`<prefix>{<tag>}:<part>:…`: keys of one tag live in one slot of a cluster."""
        return ":".join((f"{self._prefix}{{{tag}}}", *parts))

    def run(self, script: str, *, keys: Sequence[str], args: Sequence[Word]) -> Coroutine[Any, Any, Any]:
        """Run `lua/<script>.lua`, which is sent once and called by its digest: here, before it is awaited."""
        source, digest = _lua(script)
        command = (len(keys), *keys, *args)
        return self._ran(self.call("EVALSHA", digest, *command), source, command)

    def run_source(self, script: str, *, keys: Sequence[str], args: Sequence[Word]) -> Awaitable[Any]:
        """Run `lua/<script>.lua` in one command: for scripts that Valkey rarely runs, and so may not know."""
        return self.call("EVAL", _lua(script)[0], len(keys), *keys, *args)

    async def _ran(self, called: Awaitable[Any], source: str, command: tuple[Word, ...]) -> Any:
        try:
            return await called
        except NoScriptError:
            return await self.call("EVAL", source, *command)

    def channel(self, name: str) -> str:
        return f"{self._prefix}channel:{name}"

    async def ping(self) -> None:
        with map_errors():
            await self.client.ping()


@asynccontextmanager
async def open_valkey(url: str, *, prefix: str = "parley:") -> AsyncIterator[Valkey]:
    """A client of `url` (`redis://…`, `unix://…`). It fails at once: waiting and retrying are the caller's."""
    # in a burst commands wait for a connection; a pool that refuses would look like a server that is away
    pool = BlockingConnectionPool.from_url(
        url,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=_ANSWER_S,
        socket_connect_timeout=_ANSWER_S,
        max_connections=_CONNECTIONS,
        timeout=_PLACE_S,
    )
    waiting = BlockingConnectionPool.from_url(
        url,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=_LONGEST_WAIT_S,
        socket_connect_timeout=_ANSWER_S,
        max_connections=_WAITING_CONNECTIONS,
        timeout=_PLACE_S,
    )
    async with Redis.from_pool(pool) as client, Redis.from_pool(waiting) as blocking:
        connection = pool.make_connection()  # type: ignore[no-untyped-call]
        pipeline = CommandPipeline(connection, answer_s=_ANSWER_S, availability=Availability("valkey"))
        try:
            yield Valkey(client, prefix, blocking=blocking, pipeline=pipeline)
        finally:
            await pipeline.close()
