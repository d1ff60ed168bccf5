"""The job that compares assets with the entries of the ledger."""

from contextlib import aclosing
from dataclasses import asdict

import structlog
from prometheus_client import Gauge

from app.services import Services
from storage.assets.differences import find_differences
from storage.jobs.jobs import VerifyLedger

log = structlog.get_logger()

DIFFERENCES = Gauge(
    "parley_ledger_differences", "Assets, withdrawals and share groups that differed at the last check"
)
_MAX_LINES = 100


async def verify_ledger(services: Services, _: VerifyLedger) -> None:
    """Count and log differences from the entries. Nothing is changed."""
    count = 0
    async with aclosing(find_differences(services.database)) as differences:
        async for found in differences:
            count += 1
            if count <= _MAX_LINES:
                log.error("ledger.difference", **asdict(found))
    DIFFERENCES.set(count)
    log.info("ledger.verified", differences=count)
