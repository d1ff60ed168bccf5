"""The figures of the overview that are read from PostgreSQL, for all operators who watch it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Generic, NamedTuple, TypeVar

from storage.configs.store import ConfigStore
from storage.conversations import spent_today
from storage.events import queue as event_queue
from storage.events.queue import Sink
from storage.jobs import inbox, jobs, schedules
from storage.jobs.jobs import JobCount
from storage.operators import audit
from storage.operators.audit import AuditEntry, Filters
from storage.payments import mismatches, sales_days
from storage.payments.sales_days import SalesDay
from storage.postgres.connection import Connection
from storage.postgres.reads import Reads
from storage.processes import processes
from storage.processes.heartbeats import VOID_AFTER_S

COUNTED = 1000
"""No more webhooks and mismatches than these are counted, so that a count stays cheap."""
_MAX_AGE_S = 10.0
_MAX_SHARE = 0.01
"""The part of the time for which the database may work for these figures: what takes long is read less often."""
_CHANGES = 6
_SHOWN = 20

T = TypeVar("T")


class Figures(NamedTuple):
    """Figures from PostgreSQL at one moment."""

    jobs: Sequence[JobCount] = ()
    workers: int | None = None
    """How many workers run jobs. `None`: it is not known."""
    silent: Sequence[str] = ()
    """Processes that have neither ended nor reported within the last 30 s."""
    mismatches: int = 0
    """Differences with payment platforms into which somebody has to look."""
    failed_webhooks: int = 0
    dead_events: Mapping[Sink, int] = {}
    sold: Sequence[SalesDay] = ()
    """What was paid since midnight in UTC, the currency with the most payments first."""
    changes: Sequence[AuditEntry] = ()
    """The last changes by operators and commands."""
    spent: Mapping[str, Decimal] = {}
    """Prices of calls to vendors since midnight in UTC, by app."""


class StoredFigures:
    """The figures as they were last read, when that was at most ten seconds ago and reading them is quick."""

    def __init__(self, reads: Reads, configs: ConfigStore) -> None:
        self._configs = configs
        self._counts = _Kept(reads, _read)
        self._spent = _Kept(reads, self._read_spent)

    async def read(self) -> Figures:
        """Return the figures. Raises `StoreError` if they have to be read and cannot be."""
        counts = await self._counts.read()
        return counts._replace(spent=await self._spent.read())

    async def _read_spent(self, conn: Connection) -> dict[str, Decimal]:
        return await spent_today.spent_since(conn, self._configs.apps(), since=_midnight())


class _Kept(Generic[T]):
    """The result of a query, which is kept for ten seconds, or longer if the query is slow."""

    def __init__(self, reads: Reads, query: Callable[[Connection], Awaitable[T]]) -> None:
        self._reads = reads
        self._query = query
        self._stale_at = float("-inf")
        self._reading = asyncio.Lock()

    async def read(self) -> T:
        async with self._reading:  # Others wait for what one reads.
            if (begun := time.monotonic()) >= self._stale_at:
                self._value = await self._reads.read(self._query)
                now = time.monotonic()
                self._stale_at = now + max(_MAX_AGE_S, (now - begun) / _MAX_SHARE)
            return self._value


async def _read(conn: Connection) -> Figures:
    return Figures(
        jobs=await jobs.job_counts(conn),
        workers=await schedules.workers(conn),
        silent=await processes.silent(conn, after_s=VOID_AFTER_S, limit=_SHOWN),
        mismatches=await mismatches.count_open(conn, at_most=COUNTED),
        failed_webhooks=await inbox.count_failed(conn, at_most=COUNTED),
        dead_events=await event_queue.dead_by_sink(conn, limit=_SHOWN),
        sold=await _sold_today(conn),
        changes=await audit.entries(conn, Filters(of_operators=False), before_id=None, limit=_CHANGES),
    )


async def _sold_today(conn: Connection) -> Sequence[SalesDay]:
    """Return what was paid today, the currency with the most payments first."""
    today = _midnight().date()
    found = await sales_days.between(conn, of_app=None, first=today, last=today)
    return sorted((day for day in found if day.payments), key=lambda day: -day.payments)


def _midnight() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
