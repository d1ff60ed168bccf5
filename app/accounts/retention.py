"""The job that deletes by age what logins leave behind: tokens, codes, earlier addresses, traces, held messages."""

from datetime import timedelta
from functools import partial

import structlog

from app.services import Services
from storage import bp_auth, codes, earlier_emails, jobs, login_failures
from storage.batches import delete_in_batches
from storage.jobs import RemoveExpiredSignIns
from storage.kinds.limits import LIMITS

log = structlog.get_logger()

_BATCH_SIZE = 1000
_KEEP_CODES = timedelta(days=2)
"""How long expired codes are kept, to recognise them as expired and to count the wrong ones of a day."""


async def remove_expired_sign_ins(services: Services, _: RemoveExpiredSignIns) -> None:
    """Delete the expired tokens, codes, addresses and held messages, and the old traces, of each app."""
    for app_id in await services.configs.all_apps():
        now = services.clock.now(app_id)
        days = services.configs.singleton(LIMITS, app_id).login_failure_days
        tokens = partial(bp_auth.delete_expired, app_id=app_id, before=now)
        failures = partial(login_failures.delete_expired, app_id=app_id, before=now - timedelta(days=days))
        sent = partial(codes.delete_expired, app_id=app_id, before=now - _KEEP_CODES)
        earlier = partial(earlier_emails.delete_expired, app_id=app_id, before=now - earlier_emails.RESTORABLE)
        held = partial(jobs.delete_expired, app_id=app_id, before=now)
        removed = 0
        for delete in (tokens, failures, sent, earlier, held):
            removed += await delete_in_batches(services.database, delete, size=_BATCH_SIZE)
        if removed:
            log.info("login_data.deleted", app_id=app_id, removed=removed)
