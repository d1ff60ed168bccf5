"""The job that processes stored webhooks."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from app.http.rows.webhooks import WebhookSource
from app.services import Services
from storage.jobs import inbox
from storage.jobs.inbox import WebhookState
from storage.jobs.jobs import WorkWebhook
from streams.wire.errors import ServiceError, StoreError

_WORK_S = 240
_ERROR_CHARACTERS = 1000


def worker_of(sources: Sequence[WebhookSource]) -> Callable[[Services, WorkWebhook], Awaitable[None]]:
    """Return the handler of `WorkWebhook` for the webhooks of `sources`."""
    by_name = {source.name: source for source in sources}

    async def work(services: Services, job: WorkWebhook) -> None:
        async with services.database.connection() as conn:
            webhook = await inbox.find(conn, job.webhook_id)
        if webhook is None:  # It has been deleted by age.
            return
        try:
            async with asyncio.timeout(_WORK_S):
                await by_name[webhook.state.source].work(services, webhook)
        except Exception as error:
            with suppress(StoreError):
                await _finish(services, webhook.state, error=_described(error))
            raise
        await _finish(services, webhook.state, error=None)

    return work


async def _finish(services: Services, state: WebhookState, *, error: str | None) -> None:
    now = services.clock.now(state.app_id)
    async with services.database.connection() as conn:
        await inbox.finish(conn, state.webhook_id, now=now, error=error)


def _described(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"unfinished after {_WORK_S} s"
    text = str(error) if isinstance(error, ServiceError) else repr(error)
    return text.replace("\0", " ")[:_ERROR_CHARACTERS]
