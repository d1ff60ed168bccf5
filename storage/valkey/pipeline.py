"""Command pipelining: sends the commands of all callers over one connection to Valkey.

redis-py opens the connection (address, TLS, password, database). This module encodes commands and parses replies
itself, with hiredis, so that a command needs neither a pooled connection nor a task nor a timer.

For this it takes the transport out of redis-py's connection, which is private there. Tests in
`tests/libraries/test_redis.py` check that this works with the installed version.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    MovedError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from storage.availability import Availability
from storage.valkey.causes import outage
from streams.kept_errors import copy_of

_MAX_PENDING = 16_384
_INCOMPLETE = object()
_REFUSALS: dict[str, type[RedisError]] = {
    "NOSCRIPT": NoScriptError,
    "LOADING": BusyLoadingError,
    "READONLY": ReadOnlyError,
}
"""Exception classes of error replies, by the first word of the reply. All others are `ResponseError`."""
_OF_CLUSTER: dict[str, type[ResponseError]] = {
    "MOVED": MovedError,
    "ASK": AskError,
    "TRYAGAIN": TryAgainError,
    "CLUSTERDOWN": ClusterDownError,
}
"""The same for those whose exceptions parse the rest of the reply."""

Word = str | bytes | int | float


class CommandPipeline:
    """One connection to Valkey for all commands. Connects at the first command, and again after a disconnect.

    Pending commands fail when the connection is lost. The connection is closed if the reply to a command does not
    arrive within `answer_s`.
    """

    def __init__(
        self,
        connection: AbstractConnection,
        *,
        answer_s: float,
        availability: Availability,
        lost: asyncio.Event | None = None,
    ) -> None:
        self.lost = lost or asyncio.Event()
        """Set when the connection is lost or cannot be opened. This class never clears it."""
        self._losses = 0
        self._connection = connection
        self.availability = availability
        self._answer_s = answer_s
        self._protocol: _ConnectionProtocol | None = None
        self._connecting = asyncio.Lock()
        self._attempts = 0
        self._failure: Exception | None = None
        """The error of the last attempt to connect, or `None` if that succeeded."""
        self._closed = False

    def call(self, *command: Word) -> Awaitable[Any]:
        """Send a command and return an awaitable for its reply, which must be awaited immediately.

        Awaiting it raises the subclasses of `RedisError` that redis-py raises, or `OSError`.
        """
        protocol = self._protocol
        if protocol is None or protocol.lost:
            return self._connect_and_call(command)
        return protocol.send(command)

    def losses(self, _key: str) -> object:
        """Return a value that changes when data of a key may have been lost: with each loss of the connection."""
        return self._losses

    async def ping(self) -> None:
        await self.call("PING")

    async def close(self) -> None:
        """Close the connection. Calls fail from now on."""
        self._closed = True
        if self._protocol is not None:
            self._protocol.abort()
        # A connection that is being opened is closed by whoever opens it: redis-py's `connect` fails with an
        # `AttributeError` if it is closed meanwhile.
        if not self._connecting.locked():
            await self._connection.disconnect(nowait=True)

    def _lose(self) -> None:
        self._losses += 1
        self.lost.set()

    async def _connect_and_call(self, command: tuple[Word, ...]) -> Any:
        return await (await self._connected()).send(command)

    async def _connected(self) -> "_ConnectionProtocol":
        attempts_before = self._attempts
        async with self._connecting:
            if self._protocol is not None and not self._protocol.lost:
                return self._protocol
            if self._failure is not None and self._attempts > attempts_before:
                # This caller has waited for an attempt of another caller, which failed.
                raise copy_of(self._failure)
            try:
                self._protocol = await self._connect()
            except Exception as error:
                self._failure = error
                if not self._closed:
                    _record_outage(self.availability, error)
                self._lose()
                raise
            else:
                self._failure = None
                return self._protocol
            finally:
                self._attempts += 1

    async def _connect(self) -> "_ConnectionProtocol":
        await self._connection.disconnect(nowait=True)
        if not self._closed:
            await self._connection.connect()  # type: ignore[no-untyped-call]
        if self._closed:
            await self._connection.disconnect(nowait=True)
            raise RedisConnectionError("the connection was closed")
        writer = self._connection._writer  # noqa: SLF001 - there is no public access to the transport
        assert writer is not None, "connect() has just succeeded"
        transport = cast("asyncio.Transport", writer.transport)
        if transport.is_closing():  # A transport that is lost already would not report that to its new protocol.
            raise RedisConnectionError("the connection was lost")
        protocol = _ConnectionProtocol(
            transport, answer_s=self._answer_s, availability=self.availability, on_lost=self._lose
        )
        transport.set_protocol(protocol)
        return protocol


class _ConnectionProtocol(asyncio.Protocol):
    """The protocol of one connection."""

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        answer_s: float,
        availability: Availability,
        on_lost: Callable[[], None],
    ) -> None:
        self.lost = False
        self._availability = availability
        self._on_lost = on_lost
        self._transport = transport
        self._answer_s = answer_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(replyError=hiredis.ReplyError, notEnoughData=_INCOMPLETE)
        self._pending: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._unsent: list[bytes] | None = None
        """Commands to be written at the end of this iteration of the loop; `None` if none was sent in it yet."""
        self._timer: asyncio.TimerHandle | None = None

    def send(self, command: tuple[Word, ...]) -> asyncio.Future[Any]:
        """Send a command and return a future for its reply.

        The first command of an iteration of the event loop is written immediately, the others together at its end.
        """
        answer: asyncio.Future[Any] = self._loop.create_future()
        if len(self._pending) >= _MAX_PENDING:
            answer.set_exception(RedisConnectionError("too many commands are pending"))
            return answer
        packed = hiredis.pack_command(cast("Any", command))
        if self._unsent is None:
            self._unsent = []
            self._loop.call_soon(self._flush)
            self._transport.write(packed)
        else:
            self._unsent.append(packed)
        self._pending.append((self._loop.time() + self._answer_s, answer))
        if self._timer is None:
            self._timer = self._loop.call_later(self._answer_s, self._check)
        return answer

    def abort(self) -> None:
        self._fail(RedisConnectionError("the connection was closed"))
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._availability.cause:
            self._availability.worked()
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not _INCOMPLETE:
                if isinstance(answer, hiredis.PushNotification):
                    continue
                _, future = self._pending.popleft()
                if future.done():  # The caller was cancelled.
                    continue
                if isinstance(answer, hiredis.ReplyError):
                    refusal = _refusal(answer)
                    _record_outage(self._availability, refusal)
                    future.set_exception(refusal)
                    if isinstance(refusal, ReadOnlyError):  # The primary became a replica: find the new one.
                        self.abort()
                else:
                    future.set_result(answer)
        except (hiredis.ProtocolError, IndexError):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.lost:
            return
        error = RedisConnectionError(f"the connection was lost: {exc or 'closed'}")
        error.__cause__ = exc
        if self._pending:  # The server may also close an idle connection without an outage.
            _record_outage(self._availability, error)
        self._fail(error)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, None
        if unsent and not self.lost:
            self._transport.write(b"".join(unsent))

    def _check(self) -> None:
        """Check the deadline of the oldest pending command. One timer serves all pending commands."""
        self._timer = None
        if not self._pending:
            return
        due = self._pending[0][0]
        if due > self._loop.time():
            self._timer = self._loop.call_at(due, self._check)
            return
        timeout = RedisTimeoutError("no answer in time")
        _record_outage(self._availability, timeout)
        self._fail(timeout)
        self._transport.abort()

    def _fail(self, error: Exception) -> None:
        self.lost = True
        self._on_lost()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending = self._pending, deque()
        for _, future in pending:
            if not future.done():
                future.set_exception(error)


def _record_outage(availability: Availability, error: Exception) -> None:
    """Record in `availability` if `error` means that Valkey is unavailable."""
    if (cause := outage(error)) is not None:
        availability.failed(f"Valkey {cause}", error, partly=isinstance(error, ResponseError))


def _refusal(error: hiredis.ReplyError) -> RedisError:
    message = str(error)
    word, _, rest = message.partition(" ")
    if word in _OF_CLUSTER:
        return _OF_CLUSTER[word](rest)
    return _REFUSALS.get(word, ResponseError)(message)
