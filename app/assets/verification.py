"""The job that compares assets and withdrawals with their entries."""

from contextlib import aclosing
from dataclasses import asdict

import structlog
from prometheus_client import Gauge

from app.services import Services
from storage import withdrawals
from storage.jobs import VerifyLedger
from storage.ledger import find_differences

log = structlog.get_logger()

DIFFERENCES = Gauge("parley_ledger_differences", "Assets and withdrawals that differed at the last check")
_MAX_LINES = 100


async def verify_ledger(services: Services, _: VerifyLedger) -> None:
    """Count and log what does not follow from the entries. Nothing is changed."""
    count = 0
    async with aclosing(find_differences(services.database)) as differences:
        async for found in differences:
            count += 1
            if count <= _MAX_LINES:
                log.error(
                    "ledger.difference",
                    app_id=found.app_id,
                    uid=found.uid,
                    asset=found.name,
                    subscription=found.subscription,
                )
    async with services.database.connection() as conn:
        for differing in await withdrawals.find_differences(conn, limit=_MAX_LINES):
            count += 1
            log.error("ledger.difference", **asdict(differing))
    DIFFERENCES.set(count)
    log.info("ledger.verified", differences=count)
