"""The job that deletes by age what logins leave behind: sessions, tokens, codes, addresses, messages, traces."""

from datetime import datetime, timedelta
from functools import partial

import structlog

from app.services import Services
from storage.accounts import (
    bp_auth,
    codes,
    earlier_emails,
    emails,
    login_failures,
    login_networks,
    logins,
    used_once,
)
from storage.configs.kinds.auth import AUTH
from storage.configs.kinds.limits import LIMITS
from storage.jobs import jobs
from storage.jobs.jobs import RemoveExpiredSignIns
from storage.postgres.batches import Deletion, delete_in_batches

log = structlog.get_logger()

_BATCH_SIZE = 1000
_KEEP_CODES = timedelta(days=2)
"""How long expired codes are kept, to recognize them as expired and to count the wrong ones of a day."""
_KEEP_PENDING = timedelta(days=60)
"""How long a pending address is kept after its last link was sent. A link can be used for at most 30 days, and its
user can request another one for 30 more."""


async def remove_expired_sign_ins(services: Services, _: RemoveExpiredSignIns) -> None:
    """Delete what has expired of each app: sessions, tokens, codes, networks, addresses, held messages, traces."""
    for app_id in await services.configs.all_apps():
        removed = 0
        for delete in _deletions(services, app_id, now=services.clock.now(app_id)):
            removed += await delete_in_batches(services.database, delete, size=_BATCH_SIZE)
        if removed:
            log.info("login_data.deleted", app_id=app_id, removed=removed)


def _deletions(services: Services, app_id: str, *, now: datetime) -> list[Deletion]:
    sliding_s = services.configs.singleton(AUTH, app_id).session_sliding_s
    keep_failures = timedelta(days=services.configs.singleton(LIMITS, app_id).login_failure_days)
    return [
        partial(logins.delete_dead_sessions, app_id=app_id, now=now, sliding_s=sliding_s),
        partial(bp_auth.delete_expired, app_id=app_id, before=now),
        partial(login_failures.delete_expired, app_id=app_id, before=now - keep_failures),
        partial(codes.delete_expired, app_id=app_id, before=now - _KEEP_CODES),
        partial(earlier_emails.delete_expired, app_id=app_id, before=now - earlier_emails.RESTORABLE),
        partial(emails.delete_pending, app_id=app_id, before=now - _KEEP_PENDING),
        partial(login_networks.delete_expired, app_id=app_id, before=now - login_networks.KEEP),
        partial(used_once.delete_expired, app_id=app_id, before=now),
        partial(jobs.delete_expired, app_id=app_id, before=now),
    ]
