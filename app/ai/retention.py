"""Jobs that delete what an app no longer keeps: audio of text-to-speech streams, and conversations."""

from datetime import date, timedelta
from functools import partial

import structlog

from app.app_limits import limits_of_all_apps
from app.services import Services
from storage.conversations.speech_files import day_of, days_folder
from storage.jobs.jobs import RemoveExpiredConversations, RemoveExpiredSpeech, RemoveObjects
from storage.postgres.batches import delete_in_batches
from storage.userdata.retention import delete_expired

log = structlog.get_logger()

_BATCH_SIZE = 100
_RESTORABLE_DAYS = 30
"""The days after the deletion of an app for which its conversations are kept, because it may be restored."""


async def remove_expired_speech(services: Services, job: RemoveExpiredSpeech) -> None:
    """Delete whole days of each app's audio after its `speech_days`, when all links of the day have expired."""
    for app in await limits_of_all_apps(services, job):
        before = (services.clock.now(app.app_id) - timedelta(days=app.limits.speech_days)).date()
        for folder in await services.objects.folders(days_folder(app.app_id)):
            if (day := day_of(folder)) is not None and day < before:
                await _remove_folder(services, app.app_id, folder, day)


async def _remove_folder(services: Services, app_id: str, folder: str, day: date) -> None:
    count = 0
    while keys := await services.objects.keys(folder, limit=_BATCH_SIZE):
        await services.objects.delete(keys)
        count += len(keys)
    log.info("speech.expired", app_id=app_id, day=day.isoformat(), removed=count)


async def remove_expired_conversations(services: Services, job: RemoveExpiredConversations) -> None:
    """Delete the conversations of each app that had no turn for its `conversation_days`, and of deleted apps."""
    for app in await limits_of_all_apps(services, job):
        days, now = app.limits.conversation_days, services.clock.now(app.app_id)
        if app.deleted_at is not None and app.deleted_at < now - timedelta(days=_RESTORABLE_DAYS):
            days = _RESTORABLE_DAYS  # Since it was deleted, none of its conversations has had a turn.
        if days is None:
            continue
        delete = partial(delete_expired, app_id=app.app_id, before=now - timedelta(days=days))
        if removed := await delete_in_batches(services.database, delete, size=_BATCH_SIZE):
            log.info("conversations.expired", app_id=app.app_id, removed=removed)


async def remove_objects(services: Services, job: RemoveObjects) -> None:
    await services.objects.delete(job.keys)
