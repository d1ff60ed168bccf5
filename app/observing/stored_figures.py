"""The figures of the overview that are read from PostgreSQL, for all operators who watch it."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from storage.jobs import jobs
from storage.jobs.jobs import JobCount
from storage.operators import audit
from storage.operators.audit import AuditEntry, Filters
from storage.payments import money_today
from storage.payments.money_today import Taken
from storage.postgres.connection import Connection
from storage.postgres.reads import Reads

_MAX_AGE_S = 10.0
_CHANGES = 6


class Figures(NamedTuple):
    """Figures from PostgreSQL at one moment."""

    jobs: Sequence[JobCount]
    taken: Sequence[Taken]
    """Payments for orders since midnight in UTC."""
    changes: Sequence[AuditEntry]
    """The last changes by operators and commands."""


class StoredFigures:
    """The figures as they were last read. They are read again when they are older than ten seconds."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def read(self) -> Figures:
        """Return the figures. Raises `StoreError` if they have to be read and cannot be."""
        async with self._reading:  # Others wait for what one reads.
            if time.monotonic() - self._read_at >= _MAX_AGE_S:
                self._figures = await self._reads.read(_read)
                self._read_at = time.monotonic()
            return self._figures


async def _read(conn: Connection) -> Figures:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Figures(
        jobs=await jobs.job_counts(conn),
        taken=await money_today.taken_since(conn, midnight),
        changes=await audit.entries(conn, Filters(of_operators=False), before_id=None, limit=_CHANGES),
    )
