"""Shared by jobs that read from payment platforms: one job for each config, and the log of failures."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

from app.services import Services
from storage.configs.kinds.base import ConfigKind
from storage.configs.rows import ConfigKey
from storage.jobs.jobs import Job, enqueue
from streams.wire.errors import ServiceError, StoreError

log = structlog.get_logger()


async def enqueue_for_configs(
    services: Services, kinds: Sequence[ConfigKind[Any]], job_of: Callable[[ConfigKey], Job]
) -> None:
    """Store one job for each config of these kinds in each app, so that a slow platform does not delay the others.

    A job that is still waiting is not stored again.
    """
    for app_id in services.configs.apps():
        for kind in kinds:
            for name in services.configs.names(kind, app_id):
                job = job_of(ConfigKey(app_id, kind.name, name))
                async with services.database.transaction() as conn:
                    await enqueue(conn, job, key=f"{job.task}/{app_id}/{kind.name}/{name}")


async def read_or_log(reading: Awaitable[None], config: ConfigKey, *, subject: str = "") -> None:
    """Await `reading`. Log a failure, unless our own stores are the cause. The next job reads again.

    `subject` is the row that is read.
    """
    try:
        await reading
    except StoreError:
        raise
    except ServiceError as error:
        log.warning(
            "platform.unread",
            app_id=config.app_id,
            kind=config.kind,
            config=config.name,
            subject=subject,
            error=str(error),
        )
