"""Deletes the predictions and image tasks of users, and the files of all their tasks, when they are too old."""

from datetime import timedelta
from functools import partial

import structlog

from app.app_limits import limits_of_all_apps
from app.services import Services
from storage.jobs.jobs import RemoveExpiredTasks
from storage.postgres.batches import delete_in_batches
from storage.tasks import image_tasks, predictions, task_files

log = structlog.get_logger()

_BATCH_SIZE = 500


async def remove_expired_tasks(services: Services, job: RemoveExpiredTasks) -> None:
    """Delete what is older than the `task_days` of its app."""
    for app in await limits_of_all_apps(services, job):
        before = services.clock.now(app.app_id) - timedelta(days=app.limits.task_days)
        removed = 0
        for delete in (predictions.delete_expired, image_tasks.delete_expired, task_files.delete_expired):
            removed += await delete_in_batches(
                services.database, partial(delete, app_id=app.app_id, before=before), size=_BATCH_SIZE
            )
        if removed:
            log.info("tasks.expired", app_id=app.app_id, removed=removed)
