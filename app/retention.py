"""Jobs that delete what the endpoints of all areas leave behind: idempotency keys, and webhooks."""

from datetime import timedelta
from functools import partial

import structlog

from app.app_limits import limits_of_all_apps
from app.services import Services
from storage import idempotency, inbox
from storage.batches import delete_in_batches
from storage.jobs import RemoveExpiredKeys, RemoveExpiredWebhooks

log = structlog.get_logger()

_BATCH_SIZE = 1000


async def remove_expired_keys(services: Services, _: RemoveExpiredKeys) -> None:
    """Delete the idempotency keys whose time is over."""
    removed = await delete_in_batches(services.database, idempotency.delete_expired, size=_BATCH_SIZE)
    if removed:
        log.info("idempotency_keys.expired", removed=removed)


async def remove_expired_webhooks(services: Services, job: RemoveExpiredWebhooks) -> None:
    """Delete the webhooks of each app that were received more than its `webhook_days` ago."""
    for app in await limits_of_all_apps(services, job):
        before = services.clock.now(app.app_id) - timedelta(days=app.limits.webhook_days)
        delete = partial(inbox.delete_expired, app_id=app.app_id, before=before)
        removed = await delete_in_batches(services.database, delete, size=_BATCH_SIZE)
        if removed:
            log.info("webhooks.expired", app_id=app.app_id, removed=removed)
