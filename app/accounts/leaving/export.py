"""Jobs that write the export of a user's data to a file, and delete files that are no longer kept."""

from contextlib import aclosing
from datetime import timedelta
from functools import partial

import structlog

from app.app_limits import limits_of_all_apps
from app.services import Services
from storage.jobs.jobs import ExportUser, RemoveExpiredExports
from storage.postgres.batches import delete_in_batches
from storage.userdata import exports
from storage.userdata.document import document
from storage.userdata.exported import ExportedUser
from storage.userdata.exports import object_key

log = structlog.get_logger()

_BATCH_SIZE = 100


async def export_user(services: Services, job: ExportUser) -> None:
    """Write the file of a requested export, unless it is complete already or another one has replaced it."""
    async with services.database.connection() as conn:
        export = await exports.find(conn, job.app_id, job.uid)
    if export is None or export.export_id != job.export_id:
        # An earlier attempt may have written the file after the export was deleted.
        await services.objects.delete([object_key(job.app_id, job.uid, job.export_id)])
        return
    if export.finished_at is not None:
        return
    user = ExportedUser(job.app_id, job.uid, services.database, services.objects)
    async with aclosing(await document(user)) as pieces:
        await services.objects.put(export.object_key, pieces, content_type="application/json")
    async with services.database.connection() as conn:
        exists = await exports.finish(conn, export, now=services.clock.now(export.app_id))
    if not exists:
        await services.objects.delete([export.object_key])


async def remove_expired_exports(services: Services, job: RemoveExpiredExports) -> None:
    """Delete the exports of each app that were finished more than `export_days` ago."""
    for app in await limits_of_all_apps(services, job):
        before = services.clock.now(app.app_id) - timedelta(days=app.limits.export_days)
        delete = partial(exports.delete_expired, app_id=app.app_id, before=before)
        if removed := await delete_in_batches(services.database, delete, size=_BATCH_SIZE):
            log.info("exports.expired", app_id=app.app_id, removed=removed)
