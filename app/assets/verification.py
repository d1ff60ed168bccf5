"""The job that compares the assets of all users with the ledger."""

from contextlib import aclosing

import structlog
from prometheus_client import Gauge

from app.services import Services
from storage.jobs import VerifyLedger
from storage.ledger import find_differences

log = structlog.get_logger()

DIFFERENCES = Gauge("parley_ledger_differences", "Assets that differed from the ledger at the last check")
_MAX_LINES = 100


async def verify_ledger(services: Services, _: VerifyLedger) -> None:
    """Count and log the assets that are not what follows from the ledger. Nothing is changed."""
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
    DIFFERENCES.set(count)
    log.info("ledger.verified", differences=count)
