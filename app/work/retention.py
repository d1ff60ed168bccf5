"""The job that deletes expired data, and the job that deletes files without a row."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import structlog
from prometheus_client import Counter

from app.services import Services
from storage.configs.kinds.limits import LIMITS
from storage.jobs.jobs import RemoveExpired, RemoveObjects
from storage.userdata.retention import KeptApp, KeptDays
from storage.userdata.tables import USER_TABLES
from streams.wire.errors import ConfigInvalid, ServiceError

log = structlog.get_logger()

_REMOVAL_S = 600
"""A table with more rows to delete than this allows must not block the other tables."""

APPS_SKIPPED = Counter(
    "parley_job_apps_skipped", "Apps that a job skipped because their limits are broken", ["job"]
)


async def remove_expired(services: Services, job: RemoveExpired) -> None:
    """Delete expired data. If a deletion fails, the job fails after it has done all other deletions."""
    failed = []
    for table, app_id, remove in _removals(services, await _apps(services, job)):
        try:
            async with asyncio.timeout(_REMOVAL_S):
                removed = await remove()
        except Exception as error:
            unexpected = None if isinstance(error, (ServiceError, TimeoutError)) else error
            reason = f"unfinished after {_REMOVAL_S:g} s" if isinstance(error, TimeoutError) else str(error)
            log.warning("expired.not_removed", table=table, app_id=app_id, error=reason, exc_info=unexpected)
            failed.append(f"{table} of {app_id or 'all apps'}")
        else:
            if removed:
                log.info("expired.removed", table=table, app_id=app_id, removed=removed)
    if failed:
        raise RuntimeError(f"not removed: {', '.join(failed)}")


def _removals(
    services: Services, apps: list[KeptApp]
) -> Iterator[tuple[str, str | None, Callable[[], Awaitable[int]]]]:
    """Yield the table, the app (`None`: all apps), and the function that deletes the expired rows."""
    for table in USER_TABLES:
        if table.expires_for_all_apps is not None:
            kept = KeptDays(services.settings.audit_days, services.settings.attempt_days)
            yield table.name, None, partial(table.expires_for_all_apps, services.database, kept=kept)
        if table.expires is not None:
            for app in apps:
                yield table.name, app.app_id, partial(table.remove_expired, app)


async def _apps(services: Services, job: RemoveExpired) -> list[KeptApp]:
    """Return all apps that have ever existed, except those whose config `limits` cannot be used.

    Those are logged and counted. The next run after a correction of the config deletes their data.
    """
    found, stores = [], (services.configs, services.database, services.objects, await services.objects.lifecycle())
    for app_id, deleted_at in (await services.configs.all_apps()).items():
        try:
            limits = services.configs.singleton(LIMITS, app_id)
        except ConfigInvalid as error:
            log.error("job.app_skipped", job=job.task, app_id=app_id, kind=LIMITS.name, error=error.what)
            APPS_SKIPPED.labels(job.task).inc()
        else:
            found.append(KeptApp(app_id, services.clock.now(app_id), limits, deleted_at, *stores))
    return found


async def remove_objects(services: Services, job: RemoveObjects) -> None:
    await services.objects.delete(job.keys)
