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
MOST_BATCHES = 256
_BATCHES_AT_ONCE = 2
_ALONE_AT_ONCE = 4
_LOST = 10_000
USUAL_CONNECTIONS = 2 * _BATCHES_AT_ONCE
CONNECTIONS = USUAL_CONNECTIONS + 2 * _ALONE_AT_ONCE
LOCKED_S = 0.1
"""So long a batch waits for a row that somebody else holds: it holds up all that comes behind it."""

T = TypeVar("T", bound=NewTurn | ClosedTurn)
_Asked = list[tuple[T, asyncio.Future[Any]]]


class TurnWriter:
    """Opens and closes turns, those of one moment together; nobody waits for others to come.

    A batch is one transaction. One that fails by a turn in it is void, and each of its turns is tried alone; one
    whose row is `Locked` again and again, behind all others.
    """

    def __init__(self, database: Database, heartbeat: Heartbeat, *, within_s: float) -> None:
        self._database = database
        self._heartbeat = heartbeat
        self._loop = asyncio.get_running_loop()
        self._lost: dict[str, NewTurn] = {}
        """By stream: those that may have been opened, though who asked was told that they were not."""
        self._opened = BatchQueue(self._open, within_s, most=MOST_TOGETHER, at_once=_BATCHES_AT_ONCE)
        self._closed = BatchQueue(self._close, within_s, most=MOST_TOGETHER, at_once=_BATCHES_AT_ONCE)
        self._opened_alone = BatchQueue(self._open_alone, within_s, most=1, at_once=_ALONE_AT_ONCE)
        self._closed_alone = BatchQueue(self._close_alone, within_s, most=1, at_once=_ALONE_AT_ONCE)

    @property
    def queues(self) -> Sequence["BatchQueue[Any]"]:
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

    async def _open(self, batch: "Batch[NewTurn]") -> None:
        if not (wanted := batch.wanted()):
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

    async def _open_alone(self, batch: "Batch[NewTurn]") -> None:
        if self._lost:
            await self._end_lost()
        for turn, opened in batch.wanted():
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

    async def _close(self, batch: "Batch[ClosedTurn]") -> None:
        asked = list(batch.turns.values())
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

    async def _close_alone(self, batch: "Batch[ClosedTurn]") -> None:
        for turn, closed in batch.turns.values():
            async with self._database.connection() as conn:
                status = await conversations.close_turn(conn, turn)
            if not closed.done():
                closed.set_result(status)


@asynccontextmanager
async def open_turn_writer(
    database: Database, heartbeat: Heartbeat, *, within_s: float = 15, leave_s: float = 5
) -> AsyncIterator[TurnWriter]:
    """Write turns as long as the block lasts, then for `leave_s` what was asked for by its end.

    A batch that is not written `within_s` after its first turn came fails: the database is away.
    """
    turns = TurnWriter(database, heartbeat, within_s=within_s)
    async with AsyncExitStack() as stack:
        for queue in turns.queues:
            stack.callback(queue.shut)
            for _ in range(queue.at_once):
                await stack.enter_async_context(background(queue.run()))
        try:
            yield turns
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(leave_s):
                    for queue in turns.queues:
                        await queue.idle()


class Batch(Generic[T]):
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


class BatchQueue(Generic[T]):
    """Turns that wait to be written, in batches of at most `most`: those that arrive during a write go together.

    With `at_once` tasks that `run`, as many batches are under way at once.
    """

    def __init__(
        self, write: Callable[[Batch[T]], Awaitable[None]], within_s: float, *, most: int, at_once: int
    ) -> None:
        self.at_once = at_once
        self._write = write
        self._within_s = within_s
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._batches: asyncio.Queue[Batch[T]] = asyncio.Queue(MOST_BATCHES)
        self._newest: Batch[T] | None = None
        """The one that still grows."""
        self._shut = False

    def put(self, turn: T, waiting: asyncio.Future[Any]) -> None:
        """Have `turn` written; `waiting` is told how that went."""
        batch, conversation = self._newest, (turn.app_id, turn.conversation_id)
        if batch is None or len(batch.turns) >= self._most or conversation in batch.turns:
            if self._shut or self._batches.full():
                if not waiting.done():
                    waiting.set_exception(_away())
                return
            batch = self._newest = Batch(self._loop.time() + self._within_s)
            self._batches.put_nowait(batch)
        batch.turns[conversation] = (turn, waiting)

    async def run(self) -> None:
        """Write batch after batch, until cancelled."""
        while not stopping():
            batch = await self._batches.get()
            if batch is self._newest:
                self._newest = None
            try:
                await self._written(batch)
            except Locked as error:
                if self._shut or self._batches.full():
                    batch.fail(error)
                else:
                    self._batches.put_nowait(batch)
            except Exception as error:  # noqa: BLE001 - it is told to those who wait
                batch.fail(error)
            except BaseException:
                batch.fail(_away())
                raise
            finally:
                self._batches.task_done()
            del batch  # it holds whole answers, and the next batch may be long in coming

    async def idle(self) -> None:
        """Wait until all that was put is written."""
        await self._batches.join()

    def shut(self) -> None:
        """Take no more; who still waits is told."""
        self._shut = True
        self._newest = None
        while not self._batches.empty():
            self._batches.get_nowait().fail(_away())

    async def _written(self, batch: Batch[T]) -> None:
        with map_errors():
            if self._loop.time() > batch.until:
                raise TimeoutError
            async with asyncio.timeout_at(batch.until):
                await self._write(batch)


def _own(error: Exception) -> Exception:
    """For one of those who wait: each adds to its own what it tells its client."""
    if not isinstance(error, StoreAway):
        return error
    own = StoreAway(error.what, error_type=error.error_type, retry_after_s=error.retry_after_s)
    own.__cause__ = error
    return own


def _away() -> StoreAway:
    return StoreAway("the database takes no more turns", error_type="database", retry_after_s=1)
