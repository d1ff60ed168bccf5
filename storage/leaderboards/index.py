"""The index of a leaderboard in Valkey: a sorted set for each period, built from PostgreSQL when it is lost.

Members consist of a change and a user. They are ordered by score and then by the number of the change, so the
earlier of two equal scores ranks first. A hash has the change of each user.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from storage.leaderboards import leaderboards
from storage.leaderboards.leaderboards import BoardPeriod, Change, Standing
from storage.postgres.database import Database
from storage.valkey.client import Valkey, map_errors
from storage.valkey.pipeline import Word
from streams.metrics import CounterMetric
from streams.tasks import background, stopping
from streams.wire.codec import rfc3339
from streams.wire.errors import StoreError
from streams.wire.ids import new_id

log = structlog.get_logger()

BUILT = CounterMetric("parley_board_indexes_built", "Indexes of leaderboards that were built", [])
_FORMAT = "2"
"""The format of the keys below, which `lua/board_put.lua` describes."""
_CHANGE_DIGITS = 13
_NUMBER_DIGITS = _CHANGE_DIGITS - 1
_BATCH = 1000
_COUNTING = 2
"""How many concurrent queries count ranks in PostgreSQL. Others wait for them, or until the index is built."""
_BUILDER_MS = 10_000
"""After this time without progress, another process may build the index."""
_KEPT_MS = 24 * 60 * 60 * 1000
"""How long an index outlives its period."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of a board, as an index returns them."""

    own_rank: int
    """0: the user has no score."""
    ranked: list[Standing]
    near: list[Standing]
    has_extras: bool = False
    """Whether one of these scores may have an `extra`."""


class BoardIndexes:
    """Reads and writes the indexes of all boards, and builds those that are lost."""

    def __init__(self, database: Database, valkey: Valkey) -> None:
        self._database = database
        self._valkey = valkey
        self._wanted: dict[BoardPeriod, int] = {}
        """The indexes to build, with the milliseconds until they expire; 0: never."""
        self._woken = asyncio.Event()
        self.counting = asyncio.Semaphore(_COUNTING)
        """Held while ranks are counted in PostgreSQL, because that is slow on large boards."""

    async def put(self, period: BoardPeriod, changes: Sequence[Change]) -> bool:
        """Put scores into an index. Return whether it is ready. Raises `StoreError`."""
        return await self._put(period, changes, token="") == b"ready"

    async def read(self, period: BoardPeriod, *, uid: str, first: int, last: int, around: int) -> Ranks | None:
        """Return the ranks from `first` to `last`, and those `around` a user. `None`: the index is not ready."""
        with map_errors():
            reply = await self._valkey.run("board_read", keys=self._keys(period), args=[uid, first, last, around])
        if reply is None:
            return None
        rank, ranked, first_near, near = reply
        return Ranks(
            rank,
            _standings(period, ranked, first=first),
            _standings(period, near, first=first_near),
            has_extras=any(_has_extra(member) for member in (*ranked[::2], *near[::2])),
        )

    async def complete(self, period: BoardPeriod, changes: Sequence[Change]) -> None:
        """Add scores to the index that their uploads may not have added."""
        for ordered in _both_orders(period):
            await self.put(ordered, changes)

    async def remove(self, period: BoardPeriod, *, uid: str) -> None:
        for ordered in _both_orders(period):
            with map_errors():
                await self._valkey.run("board_remove", keys=self._keys(ordered), args=[uid])

    async def drop(self, period: BoardPeriod) -> None:
        """Delete the index of a period that is over."""
        for ordered in _both_orders(period):
            with map_errors():
                await self._valkey.call("UNLINK", *self._keys(ordered))

    def build_soon(self, period: BoardPeriod, *, ends_at: datetime | None, now: datetime) -> None:
        """Have an index built in the background, unless it is ready or another process builds it."""
        left_s = 0.0 if ends_at is None else max(0.0, (ends_at - now).total_seconds())
        self._wanted[period] = 0 if ends_at is None else int(left_s * 1000) + _KEPT_MS
        self._woken.set()

    async def build(self, period: BoardPeriod, *, kept_ms: int) -> bool:
        """Build an index while it is written. Return `False` if it is ready, is being built, or was lost again.

        A score that is stored before its batch is read is in the batch. Its own upload adds any other score.
        """
        token, keys, count, last = new_id(), self._keys(period), 0, ""
        with map_errors():
            if not await self._valkey.run("board_begin", keys=keys, args=[token, _BUILDER_MS]):
                return False
        while True:
            async with self._database.connection() as conn:
                batch = await leaderboards.changes(conn, period, after=last, limit=_BATCH)
            if await self._put(period, batch, token=token) == b"lost":
                return False
            count += len(batch)
            if len(batch) < _BATCH:
                break
            last = batch[-1].uid
        with map_errors():
            built = await self._valkey.run("board_end", keys=keys, args=[token, kept_ms])
        if built:
            BUILT.add(1)
            log.info(
                "board.index_built",
                app_id=period.app_id,
                board=period.board,
                period=rfc3339(period.starts_at),
                scores=count,
            )
        return bool(built)

    async def keep_building(self) -> None:
        """Build the requested indexes, one after another, until cancelled."""
        while not stopping():
            await self._woken.wait()
            self._woken.clear()
            while self._wanted:
                period = next(iter(self._wanted))
                kept_ms = self._wanted.pop(period)
                try:
                    await self.build(period, kept_ms=kept_ms)
                except StoreError as error:  # The next query asks for it again.
                    log.warning("board.index_failed", app_id=period.app_id, board=period.board, error=str(error))

    async def _put(self, period: BoardPeriod, changes: Sequence[Change], *, token: str) -> bytes:
        args: list[Word] = [token, _BUILDER_MS]
        for uid, number, score, has_extra in changes:
            args += (uid, f"{number:0{_NUMBER_DIGITS}x}{has_extra:d}", _ascending(period, score))
        with map_errors():
            state: bytes = await self._valkey.run("board_put", keys=self._keys(period), args=args)
        return state

    def _keys(self, period: BoardPeriod) -> tuple[str, str]:
        tag = f"{period.app_id}:board:{period.board}"
        order = "desc" if period.descending else "asc"
        parts = _FORMAT, str(int(period.starts_at.timestamp() * 1_000_000)), order
        return self._valkey.key(tag, *parts, "ranks"), self._valkey.key(tag, *parts, "changes")


def _both_orders(period: BoardPeriod) -> tuple[BoardPeriod, BoardPeriod]:
    """Return a period in both orders. A period may have two indexes if the order in its config has changed."""
    return replace(period, descending=True), replace(period, descending=False)


def _ascending(period: BoardPeriod, score: float) -> float:
    """Convert a score to a number by which ranks ascend, or back. The result is never negative zero."""
    return (-score if period.descending else score) + 0.0


def _standings(period: BoardPeriod, members: Sequence[bytes], *, first: int) -> list[Standing]:
    return [
        Standing(member[_CHANGE_DIGITS:].decode(), _ascending(period, float(score)), first + index)
        for index, (member, score) in enumerate(zip(members[::2], members[1::2], strict=True))
    ]


def _has_extra(member: bytes) -> bool:
    return member[_NUMBER_DIGITS:_CHANGE_DIGITS] == b"1"


@asynccontextmanager
async def open_board_indexes(database: Database, valkey: Valkey) -> AsyncIterator[BoardIndexes]:
    """Yield the indexes of all boards, and rebuild lost ones during the block."""
    indexes = BoardIndexes(database, valkey)
    async with background(indexes.keep_building()):
        yield indexes
