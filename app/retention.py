"""Jobs that delete what the endpoints of all areas leave behind: idempotency keys, and webhooks."""

from datetime import timedelta

import structlog

from app.services import Services
from storage import idempotency, inbox
from storage.jobs import RemoveExpiredKeys, RemoveExpiredWebhooks
from storage.kinds.limits import LIMITS

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


async def remove_expired_webhooks(services: Services, _: RemoveExpiredWebhooks) -> None:
    """Delete the webhooks of each app that were received more than its `webhook_days` ago."""
    for app_id in services.configs.apps():
        days = services.configs.singleton(LIMITS, app_id).webhook_days
        before = services.clock.now(app_id) - timedelta(days=days)
        removed, last = 0, _BATCH_SIZE
        while last == _BATCH_SIZE:
            async with services.database.connection() as conn:
                last = await inbox.delete_expired(conn, app_id, before=before, limit=_BATCH_SIZE)
            removed += last
        if removed:
            log.info("webhooks.expired", app_id=app_id, removed=removed)
