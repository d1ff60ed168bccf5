"""Valkey or Redis: the client, key names, and the conversion of its errors to `StoreError`."""

import re
from collections.abc import AsyncIterator, Awaitable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from redis import DriverInfo
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError

from storage.availability import Availability
from storage.valkey.causes import outage
from storage.valkey.pipeline import CommandPipeline, Word
from streams.wire.errors import StoreError, ValkeyError, ValkeyUnavailable

_CONNECTIONS = 16
_ANSWER_S = 1.0
_ACQUIRE_S = 5.0
_BLOCKING_CONNECTIONS = 1024
_BLOCKING_ANSWER_S = 10.0

_UNKNOWN_OPTION = re.compile(r"unexpected keyword argument '(\w+)'")
"""Python's message for an unknown option of the URL, which redis-py passes to its connections."""
_LOST_TRANSPORT = "the handler is closed"
"""uvloop's message, in a `RuntimeError`, for a write to a transport that it has reported as lost."""
_LUA = Path(__file__).parent / "lua"


VALKEY_ERRORS = (RedisError, OSError)
"""Exceptions that `Valkey.call`, `Valkey.run` and the clients raise."""


def store_error(error: Exception) -> StoreError:
    """Convert one of `VALKEY_ERRORS` to `ValkeyUnavailable`, or to `ValkeyError` if Valkey refused the command."""
    if (cause := outage(error)) is not None:
        return ValkeyUnavailable(f"Valkey {cause}")
    return ValkeyError("Valkey refused a command")


class map_errors:  # noqa: N801 - used like a function
    """Convert errors of Valkey to `StoreError`, as `store_error` does."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, VALKEY_ERRORS):
            raise store_error(error) from error


@cache
def _lua(name: str) -> tuple[str, str]:
    """Return the source of a script and its SHA-1 digest, by which `EVALSHA` runs it."""
    source = (_LUA / f"{name}.lua").read_text()
    return source, sha1(source.encode(), usedforsecurity=False).hexdigest()


@cache
def _driver() -> DriverInfo:
    """Return what connections report about their client. By default, each connection reads it from files."""
    return DriverInfo()


class Valkey:
    """A client of Valkey with the key prefix of this deployment.

    `call` and `run` are cheaper than `client` and meant for the commands that every stream needs.
    """

    def __init__(self, client: Redis, prefix: str, *, blocking: Redis, pipeline: CommandPipeline) -> None:
        self.client = client
        self.call = pipeline.call
        self.lost = pipeline.lost
        """Set when the connection of `call` and `run` is lost or cannot be opened. The heartbeat clears it."""
        self.blocking = blocking
        """A client for blocking commands. Each holds a connection while it waits."""
        self._prefix = prefix

    def key(self, tag: str, *parts: str) -> str:
        """Return `<prefix>{<tag>}:<part>:…`. Keys with the same tag are in the same slot of a cluster."""
        return ":".join((f"{self._prefix}{{{tag}}}", *parts))

    def run(self, script: str, *, keys: Sequence[str], args: Sequence[Word]) -> Coroutine[Any, Any, Any]:
        """Run `lua/<script>.lua` by its digest, and send its source only if Valkey does not know it.

        The command is sent by this call, before its result is awaited.
        """
        source, digest = _lua(script)
        command = (len(keys), *keys, *args)
        return self._finish_run(self.call("EVALSHA", digest, *command), source, command)

    def run_source(self, script: str, *, keys: Sequence[str], args: Sequence[Word]) -> Awaitable[Any]:
        """Run `lua/<script>.lua` and send its source with the command, for scripts that rarely run."""
        return self.call("EVAL", _lua(script)[0], len(keys), *keys, *args)

    async def _finish_run(self, reply: Awaitable[Any], source: str, command: tuple[Word, ...]) -> Any:
        try:
            return await reply
        except NoScriptError:
            return await self.call("EVAL", source, *command)

    def channel(self, name: str) -> str:
        return f"{self._prefix}channel:{name}"

    async def ping(self) -> None:
        with map_errors():
            await self.client.ping()


def location(url: str) -> str:
    """Describe the target of `url`, for operators. The password is left out."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    if parts.scheme == "unix":
        place, number = unquote(parts.path), options.get("db", "")
    else:
        place = f"{parts.hostname or 'localhost'}:{parts.port or 6379}"
        number = options.get("db", "") or parts.path.strip("/")
    user = unquote(parts.username or "") or options.get("username", "")
    return place + (f", database {number}" if number else "") + (f", user {user}" if user else "")


def _wrong_option(error: Exception) -> str:
    if isinstance(error, ValueError):
        return str(error)
    unknown = _UNKNOWN_OPTION.search(str(error))
    return f"unknown option {unknown[1]}" if unknown else "an option has a wrong value"


def _pool(url: str, *, answer_s: float, connections: int) -> BlockingConnectionPool:
    """Return a pool in which commands wait for a connection: if it refused them, Valkey would seem unavailable."""
    pool = BlockingConnectionPool.from_url(
        url,
        driver_info=_driver(),
        retry=Retry(NoBackoff(), 0),
        socket_timeout=answer_s,
        socket_connect_timeout=_ANSWER_S,
        max_connections=connections,
        timeout=_ACQUIRE_S,
    )
    pool.connection_class = _with_lost_transports(pool.connection_class)
    return pool


def _with_lost_transports(base: type[AbstractConnection]) -> type[AbstractConnection]:
    """Return a subclass of `base` that raises `ConnectionError` if the connection was lost before a command.

    redis-py does not check the transport before it writes, and uvloop then raises `RuntimeError`. Our own protocols
    and those of asyncpg and aiohttp check it.
    """

    class LossReportingConnection(base):  # type: ignore[misc,valid-type]
        async def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # noqa: FBT001, FBT002
            try:
                await super().send_packed_command(command, check_health)
            except RuntimeError as error:
                if _LOST_TRANSPORT not in str(error):
                    raise
                raise RedisConnectionError("the connection was lost") from error

    return LossReportingConnection


@asynccontextmanager
async def open_valkey(url: str, *, prefix: str = "parley:") -> AsyncIterator[Valkey]:
    """Open a client of `url` (`redis://…`, `unix://…`). Commands are not retried: that is left to callers."""
    try:
        pool = _pool(url, answer_s=_ANSWER_S, connections=_CONNECTIONS)
        blocking_pool = _pool(url, answer_s=_BLOCKING_ANSWER_S, connections=_BLOCKING_CONNECTIONS)
        connection = pool.make_connection()  # type: ignore[no-untyped-call]
    except (
        ValueError,
        TypeError,
        AttributeError,
    ) as error:  # An option of the URL is unknown or has a wrong value.
        cause = f"{_wrong_option(error)} (REDIS_URL: {location(url)})"
        raise ValkeyError(f"REDIS_URL cannot be used: {cause}") from error
    async with Redis.from_pool(pool) as client, Redis.from_pool(blocking_pool) as blocking:
        availability = Availability("valkey", location=location(url))
        pipeline = CommandPipeline(connection, answer_s=_ANSWER_S, availability=availability)
        try:
            yield Valkey(client, prefix, blocking=blocking, pipeline=pipeline)
        finally:
            await pipeline.close()
