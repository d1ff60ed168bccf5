"""Jobs that delete what an app no longer keeps: audio of text-to-speech streams, and conversations."""

from datetime import date, timedelta

import structlog

from app.services import Services
from storage.jobs import RemoveExpiredConversations, RemoveExpiredSpeech, RemoveObjects, enqueue
from storage.kinds.limits import LIMITS
from storage.retention import delete_expired
from storage.speech_files import day_of, days_folder

log = structlog.get_logger()

_BATCH_SIZE = 100


async def remove_expired_speech(services: Services, _: RemoveExpiredSpeech) -> None:
    """Delete whole days of each app's audio after its `speech_days`, when all links of the day have expired."""
    for app_id in services.configs.apps():
        keep = timedelta(days=services.configs.singleton(LIMITS, app_id).speech_days)
        before = (services.clock.now(app_id) - keep).date()
        for folder in await services.objects.folders(days_folder(app_id)):
            if (day := day_of(folder)) is not None and day < before:
                await _remove_folder(services, app_id, folder, day)


async def _remove_folder(services: Services, app_id: str, folder: str, day: date) -> None:
    count = 0
    while keys := await services.objects.keys(folder, limit=_BATCH_SIZE):
        await services.objects.delete(keys)
        count += len(keys)
    log.info("speech.expired", app_id=app_id, day=day.isoformat(), removed=count)


async def remove_expired_conversations(services: Services, _: RemoveExpiredConversations) -> None:
    """Delete the conversations of each app that had no turn for its `conversation_days`."""
    for app_id in services.configs.apps():
        days = services.configs.singleton(LIMITS, app_id).conversation_days
        removed = 0 if days is None else await _remove_conversations(services, app_id, days=days)
        if removed:
            log.info("conversations.expired", app_id=app_id, removed=removed)


async def _remove_conversations(services: Services, app_id: str, *, days: int) -> int:
    removed = 0
    while True:
        async with services.database.transaction() as conn:
            count, keys = await delete_expired(
                conn, app_id, days=days, limit=_BATCH_SIZE, clock_offset_s=services.clock.offset_s(app_id)
            )
            if keys:
                await enqueue(conn, RemoveObjects(keys=keys))
        removed += count
        if count < _BATCH_SIZE:
            return removed


async def remove_objects(services: Services, job: RemoveObjects) -> None:
    await services.objects.delete(job.keys)
