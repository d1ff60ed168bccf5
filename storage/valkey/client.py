"""Valkey or Redis: the client, key names, and the conversion of its errors to `StoreError`."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, Protocol

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import NoScriptError, RedisClusterException, RedisError

from storage.valkey.causes import outage
from storage.valkey.groups import UserGroups
from storage.valkey.pipeline import Word
from storage.valkey.refused import record_refusal
from streams.wire.errors import StoreError, ValkeyError, ValkeyUnavailable

LUA = Path(__file__).parent / "lua"


ALL_USERS = "processes"
"""The tag of the only group of users, if Valkey is no cluster."""
VALKEY_ERRORS = (RedisError, RedisClusterException, OSError)
"""Exceptions that `Valkey.call`, `Valkey.run` and the clients raise."""


def store_error(error: Exception) -> StoreError:
    """Convert one of `VALKEY_ERRORS` to `ValkeyUnavailable`, or to `ValkeyError` if Valkey refused the command."""
    if (cause := outage(error)) is not None:
        return ValkeyUnavailable(f"Valkey {cause}")
    record_refusal(error)
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
    source = (LUA / f"{name}.lua").read_text()
    return source, sha1(source.encode(), usedforsecurity=False).hexdigest()


class Commands(Protocol):
    """Sends commands over connections that all callers share: `CommandPipeline`, or `ClusterPipeline`."""

    lost: asyncio.Event

    def call(self, *command: Word) -> Awaitable[Any]: ...

    def losses(self, key: str) -> object: ...

    async def ping(self) -> None: ...


class Valkey:
    """A client of Valkey with the key prefix of this deployment.

    `call` and `run` are cheaper than `client` and meant for the commands that every stream needs.
    """

    def __init__(
        self,
        client: Redis,
        prefix: str,
        *,
        blocking: Redis,
        commands: Commands,
        subscribed: Callable[[str], AbstractAsyncContextManager[PubSub]],
        groups: UserGroups | None = None,
        fails_over: bool = False,
    ) -> None:
        self.client = client
        self.call = commands.call
        self.lost = commands.lost
        """Set when a connection of `call` and `run` is lost or cannot be opened. The heartbeat clears it."""
        self.losses = commands.losses
        """Returns a value that changes when Valkey may have lost data in the slot of a key."""
        self.blocking = blocking
        """A client for blocking commands. Each holds a connection while it waits."""
        self.subscribed = subscribed
        """Opens a subscription to a channel, which is confirmed by its first message."""
        self.fails_over = fails_over
        """Whether a replica takes over if a primary is lost, so that an outage usually lasts for seconds."""
        self._commands = commands
        self._prefix = prefix
        self._groups = groups
        """The groups of users of a cluster. `None` if all keys are in one place."""

    def key(self, tag: str, *parts: str) -> str:
        """Return `<prefix>{<tag>}:<part>:…`. Keys with the same tag are in the same slot of a cluster."""
        return ":".join((f"{self._prefix}{{{tag}}}", *parts))

    def stream_key(self, app_id: str, user_id: str, *parts: str) -> str:
        """Return a key for streams of a user, in the same slot as all such keys of the user's group."""
        user = f"{app_id}:{user_id}"
        return (
            self.key(self._groups.tag_of(app_id, user_id), user, *parts) if self._groups else self.key(user, *parts)
        )

    def group_of(self, app_id: str, user_id: str) -> str:
        """Return the tag of the user's group, which is one of `groups`."""
        return self._groups.tag_of(app_id, user_id) if self._groups else ALL_USERS

    @property
    def groups(self) -> Sequence[str]:
        return self._groups.tags if self._groups else (ALL_USERS,)

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

    def message(self, topic: str, data: bytes) -> tuple[str, str, bytes]:
        """Return the command that sends `data` to all subscribers of a topic. Its answer is how many there are."""
        return "SPUBLISH" if self._groups else "PUBLISH", self.channel(topic), data

    async def ping(self) -> None:
        """Raise `StoreError` unless Valkey answers; in a cluster, all of its primaries."""
        with map_errors():
            await self._commands.ping()
