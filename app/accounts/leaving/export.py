"""The job that writes the export of a user's data to a file."""

from contextlib import aclosing

from app.services import Services
from storage.jobs.jobs import ExportUser
from storage.userdata import exports
from storage.userdata.document import document
from storage.userdata.exported import ExportedUser
from storage.userdata.exports import object_key


async def export_user(services: Services, job: ExportUser) -> None:
    """Write the file of a requested export, unless the export is already complete or has been replaced."""
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
