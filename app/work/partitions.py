"""The job that adds partitions ahead of time, and reports if they are about to be missing."""

from datetime import UTC, datetime

import structlog
from prometheus_client import Gauge

from app.services import Services
from storage.jobs.jobs import MakePartitions
from storage.postgres.partitions import PARTITIONED, Partitioned, covered_until, default_is_used, make_ahead
from streams.wire.errors import StoreError

log = structlog.get_logger()

AHEAD = Gauge("parley_partitions_ahead_seconds", "Seconds for which a table has partitions ahead", ["table"])


async def make_partitions(services: Services, job: MakePartitions) -> None:
    """Add missing partitions. If that fails for a table, the job fails after it has tried all others."""
    failed = []
    for table in PARTITIONED:
        try:
            for name in await make_ahead(services.database, table, now=datetime.now(UTC)):
                log.info("partition.made", table=table.name, partition=name)
        except StoreError as error:
            log.warning("partitions.not_made", table=table.name, error=error.what)
            failed.append(table.name)
        await _measure(services, table)
    if failed:
        raise RuntimeError(f"not made: partitions of {', '.join(failed)}")


async def _measure(services: Services, table: Partitioned) -> None:
    async with services.database.connection() as conn:
        until, used = await covered_until(conn, table), await default_is_used(conn, table)
    AHEAD.labels(table.name).set((until - datetime.now(UTC)).total_seconds())
    if used:
        log.warning("partitions.default_used", table=table.name)
