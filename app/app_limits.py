"""The limits of all apps, for jobs that delete what each app no longer keeps."""

from dataclasses import dataclass
from datetime import datetime

import structlog
from prometheus_client import Counter

from app.services import Services
from storage.configs.kinds.limits import LIMITS, Limits
from storage.jobs.jobs import Job
from streams.wire.errors import ConfigInvalid

log = structlog.get_logger()

APPS_SKIPPED = Counter(
    "parley_job_apps_skipped", "Apps that a job skipped because their limits are broken", ["job"]
)


@dataclass(frozen=True, slots=True)
class AppLimits:
    app_id: str
    limits: Limits
    deleted_at: datetime | None
    """When the app was deleted; `None` if it exists."""


async def limits_of_all_apps(services: Services, job: Job) -> list[AppLimits]:
    """Return all apps that have ever existed, except those whose config `limits` cannot be used.

    These are logged and counted. `job` continues with the other apps. It works on a skipped app when it runs next,
    if the config has been corrected by then.
    """
    found = []
    for app_id, deleted_at in (await services.configs.all_apps()).items():
        try:
            limits = services.configs.singleton(LIMITS, app_id)
        except ConfigInvalid as error:
            log.error("job.app_skipped", job=job.task, app_id=app_id, kind=LIMITS.name, error=error.what)
            APPS_SKIPPED.labels(job.task).inc()
        else:
            found.append(AppLimits(app_id, limits, deleted_at))
    return found
