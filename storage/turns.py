"""Turns that many streams open and close at the same time are written together: one round trip, one commit."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Generic, TypeVar

import asyncpg

from storage import conversations
from storage.conversations import ClosedTurn, NewTurn, RecordStatus
from storage.heartbeats import Heartbeat
from storage.postgres import Database, Locked, map_errors
from streams.tasks import background, stopping
from streams.wire.errors import InvalidOperation, StoreAway, StoreError

MOST_TOGETHER = 128
MOST_GROUPS = 256
_GROUPS_AT_ONCE = 2
_ALONE_AT_ONCE = 4
_LOST = 10_000
USUAL_CONNECTIONS = 2 * _GROUPS_AT_ONCE
CONNECTIONS = USUAL_CONNECTIONS + 2 * _ALONE_AT_ONCE
LOCKED_S = 0.1
"""So long a group waits for a row that somebody else holds: it holds up all that comes behind it."""

T = TypeVar("T", bound=NewTurn | ClosedTurn)
_Asked = list[tuple[T, asyncio.Future[Any]]]


class Turns:
    """Opens and closes turns, those of one moment together; nobody waits for others to come.

    A group is one transaction. One that fails by a turn in it is void, and each of its turns is tried alone; one
    whose row is `Locked` again and again, behind all others.
    """

    def __init__(self, database: Database, heartbeat: Heartbeat, *, within_s: float) -> None:
        self._database = database
        self._heartbeat = heartbeat
        self._loop = asyncio.get_running_loop()
        self._lost: dict[str, NewTurn] = {}
        """By stream: those that may have been opened, though who asked was told that they were not."""
        self._opened = _Line(self._open, within_s, most=MOST_TOGETHER, at_once=_GROUPS_AT_ONCE)
        self._closed = _Line(self._close, within_s, most=MOST_TOGETHER, at_once=_GROUPS_AT_ONCE)
        self._opened_alone = _Line(self._open_alone, within_s, most=1, at_once=_ALONE_AT_ONCE)
        self._closed_alone = _Line(self._close_alone, within_s, most=1, at_once=_ALONE_AT_ONCE)

    @property
    def lines(self) -> Sequence["_Line[Any]"]:
        """A turn goes only to a later one."""
        return self._opened, self._closed, self._opened_alone, self._closed_alone

    def open(self, turn: NewTurn) -> asyncio.Future[int]:
        """Store the user's message; the id of its record. A turn that a dead process left is over.

        Who cancels it before it was sent has written nothing.
        """
        opened: asyncio.Future[int] = self._loop.create_future()
        self._opened.put(turn, opened)
        return opened

    def close(self, turn: ClosedTurn) -> asyncio.Future[RecordStatus | None]:
        """Store how a turn ended, even for one who no longer waits; the result is that of `close_turns`."""
        closed: asyncio.Future[RecordStatus | None] = self._loop.create_future()
        self._closed.put(turn, closed)
        return closed

    async def status_of(self, turn: ClosedTurn) -> RecordStatus | None:
        """The status of the turn's record; none if it was deleted."""
        async with self._database.connection() as conn:
            return await conversations.status_of(conn, turn)

    async def check_free(self, app_id: str, conversation_id: str, *, longest_s: float) -> None:
        """`InvalidOperation` while the conversation has the row of a running turn, unless its process is dead."""
        async with self._database.connection() as conn:
            runs = await conversations.turn_runs(conn, app_id, conversation_id, longest_s=longest_s)
        if runs and not await self._end_dead(app_id, conversation_id):
            raise conversations.turn_under_way()

    async def _end_dead(self, app_id: str, conversation_id: str) -> bool:
        return await conversations.end_dead_turn(self._database, self._heartbeat, app_id, conversation_id)

    async def _open(self, group: "_Group[NewTurn]") -> None:
        if not (wanted := group.wanted()):
            return
        try:
            async with self._database.connection() as conn:
                record_ids = await conversations.open_turns(conn, [turn for turn, _ in wanted])
        except (StoreAway, asyncio.CancelledError):
            self._lose(wanted)
            raise
        except (StoreError, asyncpg.UniqueViolationError):
            for turn, opened in wanted:
                self._opened_alone.put(turn, opened)
            return
        for turn, opened in wanted:
            if opened.done():
                continue
            if (record_id := record_ids.get(turn.stream_id)) is None:
                opened.set_exception(conversations.no_conversation())
            else:
                opened.set_result(record_id)

        if self._lost:
            await self._end_lost()

    async def _open_alone(self, group: "_Group[NewTurn]") -> None:
        if self._lost:
            await self._end_lost()
        for turn, opened in group.wanted():
            try:
                try:
                    record_id = await self._open_one(turn)
                except InvalidOperation:
                    if not await self._end_dead(turn.app_id, turn.conversation_id):
                        raise
                    record_id = await self._open_one(turn)
            except (StoreAway, asyncio.CancelledError):
                self._lose([(turn, opened)])
                raise
            if not opened.done():
                opened.set_result(record_id)

    async def _open_one(self, turn: NewTurn) -> int:
        async with self._database.connection() as conn:
            return await conversations.open_turn(conn, turn)

    def _lose(self, wanted: "_Asked[NewTurn]") -> None:
        self._lost.update((turn.stream_id, turn) for turn, _ in wanted)
        while len(self._lost) > _LOST:
            del self._lost[next(iter(self._lost))]

    async def _end_lost(self) -> None:
        """Let go of turns that were opened all the same: their streams have ended."""
        lost, self._lost = self._lost, {}
        try:
            async with self._database.connection() as conn:
                await conversations.end_turns(conn, list(lost.values()))
        except (StoreError, asyncio.CancelledError) as error:
            self._lost = lost | self._lost
            if not isinstance(error, StoreError):
                raise

    async def _close(self, group: "_Group[ClosedTurn]") -> None:
        asked = list(group.turns.values())
        try:
            async with self._database.connection() as conn:
                statuses = await conversations.close_turns(conn, [turn for turn, _ in asked])
        except StoreAway:
            raise
        except StoreError:
            for turn, closed in asked:
                self._closed_alone.put(turn, closed)
            return
        for turn, closed in asked:
            if not closed.done():
                closed.set_result(statuses.get(turn.stream_id))

    async def _close_alone(self, group: "_Group[ClosedTurn]") -> None:
        for turn, closed in group.turns.values():
            async with self._database.connection() as conn:
                status = await conversations.close_turn(conn, turn)
            if not closed.done():
                closed.set_result(status)


@asynccontextmanager
async def open_turns(
    database: Database, heartbeat: Heartbeat, *, within_s: float = 15, leave_s: float = 5
) -> AsyncIterator[Turns]:
    """Write turns as long as the block lasts, then for `leave_s` what was asked for by its end.

    A group that is not written `within_s` after its first turn came fails: the database is away.
    """
    turns = Turns(database, heartbeat, within_s=within_s)
    async with AsyncExitStack() as stack:
        for line in turns.lines:
            stack.callback(line.shut)
            for _ in range(line.at_once):
                await stack.enter_async_context(background(line.run()))
        try:
            yield turns
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(leave_s):
                    for line in turns.lines:
                        await line.idle()


class _Group(Generic[T]):
    """Turns that are written together, by their conversations: one of each."""

    __slots__ = ("turns", "until")

    def __init__(self, until: float) -> None:
        self.turns: dict[tuple[str, str], tuple[T, asyncio.Future[Any]]] = {}
        self.until = until

    def wanted(self) -> "_Asked[T]":
        """Those that somebody still waits for."""
        return [asked for asked in self.turns.values() if not asked[1].done()]

    def fail(self, error: Exception) -> None:
        for _, waiting in self.wanted():
            waiting.set_exception(_own(error))


class _Line(Generic[T]):
    """Turns that wait to be written, in groups of at most `most`: who comes while others are written goes together.

    With `at_once` tasks that `run`, as many groups are under way at once.
    """

    def __init__(
        self, write: Callable[[_Group[T]], Awaitable[None]], within_s: float, *, most: int, at_once: int
    ) -> None:
        self.at_once = at_once
        self._write = write
        self._within_s = within_s
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._groups: asyncio.Queue[_Group[T]] = asyncio.Queue(MOST_GROUPS)
        self._newest: _Group[T] | None = None
        """The one that still grows."""
        self._shut = False

    def put(self, turn: T, waiting: asyncio.Future[Any]) -> None:
        """Have `turn` written; `waiting` is told how that went."""
        group, conversation = self._newest, (turn.app_id, turn.conversation_id)
        if group is None or len(group.turns) >= self._most or conversation in group.turns:
            if self._shut or self._groups.full():
                if not waiting.done():
                    waiting.set_exception(_away())
                return
            group = self._newest = _Group(self._loop.time() + self._within_s)
            self._groups.put_nowait(group)
        group.turns[conversation] = (turn, waiting)

    async def run(self) -> None:
        """Write group after group, until cancelled."""
        while not stopping():
            group = await self._groups.get()
            if group is self._newest:
                self._newest = None
            try:
                await self._written(group)
            except Locked as error:
                if self._shut or self._groups.full():
                    group.fail(error)
                else:
                    self._groups.put_nowait(group)
            except Exception as error:  # noqa: BLE001 - it is told to those who wait
                group.fail(error)
            except BaseException:
                group.fail(_away())
                raise
            finally:
                self._groups.task_done()
            del group  # it holds whole answers, and the next group may be long in coming

    async def idle(self) -> None:
        """Wait until all that was put is written."""
        await self._groups.join()

    def shut(self) -> None:
        """Take no more; who still waits is told."""
        self._shut = True
        self._newest = None
        while not self._groups.empty():
            self._groups.get_nowait().fail(_away())

    async def _written(self, group: _Group[T]) -> None:
        with map_errors():
            if self._loop.time() > group.until:
                raise TimeoutError
            async with asyncio.timeout_at(group.until):
                await self._write(group)


def _own(error: Exception) -> Exception:
    """For one of those who wait: each adds to its own what it tells its client."""
    if not isinstance(error, StoreAway):
        return error
    own = StoreAway(error.what, error_type=error.error_type, retry_after_s=error.retry_after_s)
    own.__cause__ = error
    return own


def _away() -> StoreAway:
    return StoreAway("the database takes no more turns", error_type="database", retry_after_s=1)
