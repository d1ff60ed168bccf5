"""Jobs that delete what the endpoints of all areas leave behind: idempotency keys, webhooks, events, and emails."""

from datetime import timedelta
from functools import partial

import structlog

from app.app_limits import limits_of_all_apps
from app.services import Services
from storage.configs.kinds.base import DAY_S
from storage.configs.kinds.events import EVENTS
from storage.events import queue as event_queue
from storage.jobs import idempotency, inbox
from storage.jobs.jobs import (
    RemoveExpiredEvents,
    RemoveExpiredKeys,
    RemoveExpiredMails,
    RemoveExpiredWebhooks,
    due_in,
)
from storage.mail import mails
from storage.postgres.batches import delete_in_batches

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


async def remove_expired_events(services: Services, job: RemoveExpiredEvents) -> None:
    """Delete the events of each app that no sink has accepted in its `event_days`, and those of deleted sinks."""
    for app in await limits_of_all_apps(services, job):
        sinks, before = services.configs.names(EVENTS, app.app_id), due_in(-app.limits.event_days * DAY_S)
        delete = partial(event_queue.delete_expired, app_id=app.app_id, before=before, sinks=sinks)
        removed = await delete_in_batches(services.database, delete, size=_BATCH_SIZE)
        if removed:
            log.info("events.expired", app_id=app.app_id, removed=removed)


async def remove_expired_mails(services: Services, job: RemoveExpiredMails) -> None:
    """Delete the emails of each app that were stored more than its `mail_days` ago."""
    for app in await limits_of_all_apps(services, job):
        before = services.clock.now(app.app_id) - timedelta(days=app.limits.mail_days)
        delete = partial(mails.delete_expired, app_id=app.app_id, before=before)
        removed = await delete_in_batches(services.database, delete, size=_BATCH_SIZE)
        if removed:
            log.info("mails.expired", app_id=app.app_id, removed=removed)
