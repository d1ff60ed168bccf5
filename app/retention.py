"""Jobs that delete what the endpoints of all areas leave behind: idempotency keys."""

import structlog

from app.services import Services
from storage import idempotency
from storage.jobs import RemoveExpiredKeys

log = structlog.get_logger()

_BATCH_SIZE = 1000


async def remove_expired_keys(services: Services, _: RemoveExpiredKeys) -> None:
    """Delete the idempotency keys whose time is over."""
    removed, last = 0, _BATCH_SIZE
    while last == _BATCH_SIZE:
        async with services.database.connection() as conn:
            last = await idempotency.delete_expired(conn, limit=_BATCH_SIZE)
        removed += last
    if removed:
        log.info("idempotency_keys.expired", removed=removed)
