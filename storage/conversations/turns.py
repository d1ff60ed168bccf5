"""Write batching: turns that are opened or closed at the same time share one round trip and one commit."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Generic, TypeVar

from storage.clock import AppClock
from storage.conversations import turn_rows
from storage.conversations.conversations import RecordStatus
from storage.conversations.dead_turns import DeadTurns
from storage.conversations.turn_rows import ClosedTurn, NewTurn
from storage.errors import ConversationNotFound, TurnRunning
from storage.postgres.database import Database, Locked, map_errors
from streams.kept_errors import copy_of, stripped
from streams.tasks import background, stopping
from streams.wire.errors import DatabaseUnavailable, StoreError, StoreUnavailable

MAX_BATCH_SIZE = 128
"""Maximum number of turns in a batch."""
MAX_BATCHES = 256
"""Maximum number of batches in a queue."""
_CONCURRENT_BATCHES = 2
_SINGLE_WRITERS = 4
_MAX_UNCONFIRMED = 10_000
USUAL_CONNECTIONS = 2 * _CONCURRENT_BATCHES
CONNECTIONS = USUAL_CONNECTIONS + 2 * _SINGLE_WRITERS
LOCKED_S = 0.1
"""How long a batch waits for a locked row. Short, because the batches behind it wait too."""

T = TypeVar("T", bound=NewTurn | ClosedTurn)
_Requests = list[tuple[T, asyncio.Future[Any]]]


class TurnWriter:
    """Opens and closes turns. Turns that arrive while a write is in progress are written together as a batch.

    A batch is one transaction. If a turn makes it fail, each of its turns is retried alone. A turn whose row is
    `Locked` is retried after all others.
    """

    def __init__(self, database: Database, dead_turns: DeadTurns, clock: AppClock, *, within_s: float) -> None:
        self._database = database
        self.dead_turns = dead_turns
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._unconfirmed: dict[str, NewTurn] = {}
        """Turns that may have been opened although their caller received an error, by stream id."""
        self._opened = BatchQueue(self._open, within_s, batch_size=MAX_BATCH_SIZE, concurrency=_CONCURRENT_BATCHES)
        self._closed = BatchQueue(self._close, within_s, batch_size=MAX_BATCH_SIZE, concurrency=_CONCURRENT_BATCHES)
        self._opened_singly = BatchQueue(self._open_singly, within_s, batch_size=1, concurrency=_SINGLE_WRITERS)
        self._closed_singly = BatchQueue(self._close_singly, within_s, batch_size=1, concurrency=_SINGLE_WRITERS)

    @property
    def queues(self) -> Sequence["BatchQueue[Any]"]:
        """All queues, ordered so that turns are only passed on to later ones."""
        return self._opened, self._closed, self._opened_singly, self._closed_singly

    def open(self, turn: NewTurn) -> asyncio.Future[int]:
        """Store the user's message and return a future for the id of its record.

        A turn that is still running in a dead process is ended first. Nothing is written if the future is cancelled
        before its batch is sent.
        """
        opened: asyncio.Future[int] = self._loop.create_future()
        self._opened.put(turn, opened)
        return opened

    def close(self, turn: ClosedTurn) -> asyncio.Future[RecordStatus | None]:
        """Store the outcome of a turn and return a future for the new status of its record, as `close_turns` does.

        The outcome is written even if the future is cancelled.
        """
        closed: asyncio.Future[RecordStatus | None] = self._loop.create_future()
        self._closed.put(turn, closed)
        return closed

    async def status_of(self, turn: ClosedTurn) -> RecordStatus | None:
        """Return the status of the turn's record, or `None` if it was deleted."""
        async with self._database.connection() as conn:
            return await turn_rows.status_of(conn, turn)

    async def check_free(self, app_id: str, conversation_id: str, *, max_stream_s: float) -> None:
        """Raise `TurnRunning` if a turn of the conversation is running. A turn of a dead process is ended.

        That includes one that has been running for too long, because what it said may not be stored yet.
        """
        async with self._database.connection() as conn:
            runs = await turn_rows.turn_runs(
                conn,
                app_id,
                conversation_id=conversation_id,
                max_stream_s=max_stream_s,
                clock_offset_s=self._clock.offset_s(app_id),
            )
        if not await self.dead_turns.end(app_id, conversation_id, gives_up=True) and runs:
            raise TurnRunning

    async def _open(self, batch: "Batch[NewTurn]") -> None:
        if not (requests := batch.pending()):
            return
        try:
            async with self._database.connection() as conn:
                record_ids = await turn_rows.open_turns(conn, [turn for turn, _ in requests])
        except (StoreUnavailable, asyncio.CancelledError):
            self._add_unconfirmed(requests)
            raise
        except StoreError:
            for turn, opened in requests:
                self._opened_singly.put(turn, opened)
            return
        for turn, opened in requests:
            if opened.done():
                continue
            if (record_id := record_ids.get(turn.stream_id)) is None:
                opened.set_exception(ConversationNotFound(turn.conversation_id))
            else:
                opened.set_result(record_id)

        if self._unconfirmed:
            await self._end_unconfirmed()

    async def _open_singly(self, batch: "Batch[NewTurn]") -> None:
        if self._unconfirmed:
            await self._end_unconfirmed()
        for turn, opened in batch.pending():
            try:
                try:
                    record_id = await self._open_one(turn)
                except TurnRunning:
                    if not await self.dead_turns.end(turn.app_id, turn.conversation_id, gives_up=True):
                        raise
                    record_id = await self._open_one(turn)
            except (StoreUnavailable, asyncio.CancelledError):
                self._add_unconfirmed([(turn, opened)])
                raise
            if not opened.done():
                opened.set_result(record_id)

    async def _open_one(self, turn: NewTurn) -> int:
        async with self._database.connection() as conn:
            return await turn_rows.open_turn(conn, turn)

    def _add_unconfirmed(self, requests: "_Requests[NewTurn]") -> None:
        self._unconfirmed.update((turn.stream_id, turn) for turn, _ in requests)
        while len(self._unconfirmed) > _MAX_UNCONFIRMED:
            del self._unconfirmed[next(iter(self._unconfirmed))]

    async def _end_unconfirmed(self) -> None:
        """End unconfirmed turns that were opened after all. Their streams have ended."""
        unconfirmed, self._unconfirmed = self._unconfirmed, {}
        try:
            async with self._database.connection() as conn:
                await turn_rows.end_turns(conn, list(unconfirmed.values()))
        except (StoreError, asyncio.CancelledError) as error:
            self._unconfirmed = unconfirmed | self._unconfirmed
            if not isinstance(error, StoreError):
                raise

    async def _close(self, batch: "Batch[ClosedTurn]") -> None:
        requests = list(batch.turns.values())
        try:
            async with self._database.connection() as conn:
                statuses = await turn_rows.close_turns(conn, [turn for turn, _ in requests])
        except StoreUnavailable:
            raise
        except StoreError:
            for turn, closed in requests:
                self._closed_singly.put(turn, closed)
            return
        for turn, closed in requests:
            if not closed.done():
                closed.set_result(statuses.get(turn.stream_id))

    async def _close_singly(self, batch: "Batch[ClosedTurn]") -> None:
        for turn, closed in batch.turns.values():
            async with self._database.connection() as conn:
                status = await turn_rows.close_turn(conn, turn)
            if not closed.done():
                closed.set_result(status)


@asynccontextmanager
async def open_turn_writer(
    database: Database, dead_turns: DeadTurns, clock: AppClock, *, within_s: float = 15, leave_s: float = 5
) -> AsyncIterator[TurnWriter]:
    """Write turns during the block. At its end, wait up to `leave_s` until all queued turns are written.

    A batch fails if it is not written within `within_s` after its first turn was queued.
    """
    turns = TurnWriter(database, dead_turns, clock, within_s=within_s)
    async with AsyncExitStack() as stack:
        for queue in turns.queues:
            stack.callback(queue.shut)
            for _ in range(queue.concurrency):
                await stack.enter_async_context(background(queue.run()))
        try:
            yield turns
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(leave_s):
                    for queue in turns.queues:
                        await queue.idle()


class Batch(Generic[T]):
    """Turns that are written together, at most one per conversation."""

    __slots__ = ("turns", "until")

    def __init__(self, until: float) -> None:
        self.turns: dict[tuple[str, str], tuple[T, asyncio.Future[Any]]] = {}
        self.until = until

    def pending(self) -> "_Requests[T]":
        """Return the turns whose future is not done, so that a caller still waits for them."""
        return [request for request in self.turns.values() if not request[1].done()]

    def fail(self, error: Exception) -> None:
        """Raise a copy of `error` to each caller, which may add information for its client."""
        stripped(error)  # Its frames refer to the futures.
        for _, future in self.pending():
            future.set_exception(copy_of(error))


class BatchQueue(Generic[T]):
    """A queue of turns that are written in batches of at most `batch_size`.

    `concurrency` is the number of tasks that are expected to call `run`: each writes one batch at a time.
    """

    def __init__(
        self, write: Callable[[Batch[T]], Awaitable[None]], within_s: float, *, batch_size: int, concurrency: int
    ) -> None:
        self.concurrency = concurrency
        self._write = write
        self._within_s = within_s
        self._batch_size = batch_size
        self._loop = asyncio.get_running_loop()
        self._batches: asyncio.Queue[Batch[T]] = asyncio.Queue(MAX_BATCHES)
        self._newest: Batch[T] | None = None
        """The batch that turns are added to."""
        self._shut = False

    def put(self, turn: T, future: asyncio.Future[Any]) -> None:
        """Queue `turn`. Once it is written or has failed, `future` is set."""
        batch, conversation = self._newest, (turn.app_id, turn.conversation_id)
        if batch is None or len(batch.turns) >= self._batch_size or conversation in batch.turns:
            if self._shut or self._batches.full():
                if not future.done():
                    future.set_exception(_database_unavailable())
                return
            batch = self._newest = Batch(self._loop.time() + self._within_s)
            self._batches.put_nowait(batch)
        batch.turns[conversation] = (turn, future)

    async def run(self) -> None:
        """Write batches until cancelled."""
        while not stopping():
            batch = await self._batches.get()
            if batch is self._newest:
                self._newest = None
            try:
                await self._write_in_time(batch)
            except Locked as error:
                if self._shut or self._batches.full():
                    batch.fail(error)
                else:
                    self._batches.put_nowait(batch)
            except Exception as error:  # noqa: BLE001 - passed on to the callers
                batch.fail(error)
            except BaseException:
                batch.fail(_database_unavailable())
                raise
            finally:
                self._batches.task_done()
            del batch  # It holds whole answers, and the next batch may arrive much later.

    async def idle(self) -> None:
        """Wait until all queued turns are written or have failed."""
        await self._batches.join()

    def shut(self) -> None:
        """Accept no more turns. All queued turns fail."""
        self._shut = True
        self._newest = None
        while not self._batches.empty():
            self._batches.get_nowait().fail(_database_unavailable())

    async def _write_in_time(self, batch: Batch[T]) -> None:
        with map_errors():
            if self._loop.time() > batch.until:
                raise TimeoutError
            async with asyncio.timeout_at(batch.until):
                await self._write(batch)


def _database_unavailable() -> DatabaseUnavailable:
    return DatabaseUnavailable("the database accepts no more turns")
