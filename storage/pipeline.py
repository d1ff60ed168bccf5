"""Many callers' commands over one connection to Valkey: written as they come, answered in their order.

redis-py opens the connection (address, TLS, password, database); what goes over it is packed and read here, by
hiredis: a command of a stream costs no connection taken, no task and no timer.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import BusyLoadingError, NoScriptError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from storage.availability import Availability
from storage.valkey_causes import outage

_MOST_UNDER_WAY = 16_384
_NOTHING = object()
_REFUSALS = {"NOSCRIPT": NoScriptError, "LOADING": BusyLoadingError}
"""Those that are told apart, by their first word."""

Word = str | bytes | int | float


class CommandPipeline:
    """Connects when it is first used, and again after the connection was lost; what was under way has failed then.

    A command that is not answered within `answer_s` fails with the connection.
    """

    def __init__(self, connection: AbstractConnection, *, answer_s: float, availability: Availability) -> None:
        self.lost = asyncio.Event()
        """Set when the connection was lost or could not be opened. This class never clears it."""
        self._connection = connection
        self._availability = availability
        self._answer_s = answer_s
        self._wire: _Wire | None = None
        self._connecting = asyncio.Lock()
        self._attempts = 0
        self._failure: Exception | None = None
        """Of the last attempt to connect, unless it went well."""

    def call(self, *command: Word) -> Awaitable[Any]:
        """The answer, to be awaited at once. `RedisError` of redis-py's kinds, `OSError`."""
        wire = self._wire
        if wire is None or wire.lost:
            return self._call_anew(command)
        return wire.send(command)

    async def close(self) -> None:
        if self._wire is not None:
            self._wire.cut()
        await self._connection.disconnect(nowait=True)

    async def _call_anew(self, command: tuple[Word, ...]) -> Any:
        return await (await self._connected()).send(command)

    async def _connected(self) -> "_Wire":
        seen = self._attempts
        async with self._connecting:
            if self._wire is not None and not self._wire.lost:
                return self._wire
            if self._failure is not None and self._attempts > seen:
                raise self._failure.with_traceback(None)  # of the attempt that this caller has waited for
            try:
                self._wire = await self._connect()
            except Exception as error:
                self._failure = error
                note(self._availability, error)
                self.lost.set()
                raise
            else:
                self._failure = None
                return self._wire
            finally:
                self._attempts += 1

    async def _connect(self) -> "_Wire":
        await self._connection.disconnect(nowait=True)
        await self._connection.connect()  # type: ignore[no-untyped-call]
        writer = self._connection._writer  # noqa: SLF001 - the one way to its transport
        assert writer is not None, "it is connected"
        transport = cast("asyncio.Transport", writer.transport)
        wire = _Wire(transport, answer_s=self._answer_s, availability=self._availability, on_lost=self.lost.set)
        transport.set_protocol(wire)
        return wire


class _Wire(asyncio.Protocol):
    """One connection, until it is lost."""

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
        self._reader = hiredis.Reader(replyError=hiredis.ReplyError, notEnoughData=_NOTHING)
        self._under_way: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._unsent: list[bytes] | None = None
        """What waits for the end of this turn of the loop; none where nothing was sent in it."""
        self._timer: asyncio.TimerHandle | None = None

    def send(self, command: tuple[Word, ...]) -> asyncio.Future[Any]:
        """Its answer. The first command of a turn of the loop is written at once, the others of it in one write."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        if len(self._under_way) >= _MOST_UNDER_WAY:
            answer.set_exception(RedisConnectionError("too many commands are under way"))
            return answer
        packed = hiredis.pack_command(cast("Any", command))
        if self._unsent is None:
            self._unsent = []
            self._loop.call_soon(self._flush)
            self._transport.write(packed)
        else:
            self._unsent.append(packed)
        self._under_way.append((self._loop.time() + self._answer_s, answer))
        if self._timer is None:
            self._timer = self._loop.call_later(self._answer_s, self._check)
        return answer

    def cut(self) -> None:
        self._fail(RedisConnectionError("the connection was closed"))
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._availability.cause:
            self._availability.worked()
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not _NOTHING:
                if isinstance(answer, hiredis.PushNotification):
                    continue
                _, waiting = self._under_way.popleft()
                if waiting.done():  # its caller was cancelled
                    continue
                if isinstance(answer, hiredis.ReplyError):
                    refusal = _refusal(answer)
                    note(self._availability, refusal)
                    waiting.set_exception(refusal)
                else:
                    waiting.set_result(answer)
        except (hiredis.ProtocolError, IndexError):
            self.cut()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.lost:
            return
        lost = RedisConnectionError(f"the connection was lost: {exc or 'closed'}")
        lost.__cause__ = exc
        if self._under_way:  # an idle connection may be closed without an outage
            note(self._availability, lost)
        self._fail(lost)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, None
        if unsent and not self.lost:
            self._transport.write(b"".join(unsent))

    def _check(self) -> None:
        """One timer for all that is under way, which looks at the oldest."""
        self._timer = None
        if not self._under_way:
            return
        due = self._under_way[0][0]
        if due > self._loop.time():
            self._timer = self._loop.call_at(due, self._check)
            return
        silent = RedisTimeoutError("no answer in time")
        note(self._availability, silent)
        self._fail(silent)
        self._transport.abort()

    def _fail(self, error: Exception) -> None:
        self.lost = True
        self._on_lost()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        under_way, self._under_way = self._under_way, deque()
        for _, waiting in under_way:
            if not waiting.done():
                waiting.set_exception(error)


def note(availability: Availability, error: Exception) -> None:
    """Remember what `error` says about Valkey."""
    if (cause := outage(error)) is not None:
        availability.failed(f"the cache {cause}", error, partly=isinstance(error, ResponseError))


def _refusal(error: hiredis.ReplyError) -> RedisError:
    told = str(error)
    return _REFUSALS.get(told.partition(" ")[0], ResponseError)(told)
