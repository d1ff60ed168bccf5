"""The progress of an image task: the job that polls its host, and the webhooks of the host."""

import asyncio
import hmac
from hashlib import sha256
from typing import Any

import structlog
from pydantic import Field

from actors.clients.vendor_clients import VendorAccess
from app.ai.images.files import copy_image
from app.http.rows.webhooks import Delivery, InvalidSignature, Verified, WebhookSource, platform_config
from app.services import Services
from storage.assets import quotas
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS
from storage.jobs.inbox import Webhook
from storage.jobs.jobs import cancel_job, due_in, enqueue
from storage.postgres.database import Connection
from storage.secrets import Keyring
from storage.tasks import image_tasks
from storage.tasks.image_tasks import ImageTask, PollImageTask
from streams.wire.codec import dumps
from streams.wire.disclosure import told_cause
from streams.wire.errors import ServiceError
from streams.wire.model import Model
from vendors.catalog import IMAGE_HOSTS
from vendors.errors import TimedOut
from vendors.hosts.midjourney import HostTask, MidjourneyHost, Result
from vendors.hosts.midjourney import Webhook as HostWebhook

log = structlog.get_logger()

SUBMIT_S = 30
"""How long the host may take to accept a task."""
UNSUBMITTED_S = 60
"""When a task that the host has not accepted counts as failed: its process has died or hangs."""
_FETCH_S = 30
_COPY_S = 90
_WAITS_S = ((10, 1.0), (60, 2.0), (600, 5.0))
"""How long to wait until a task is read again, up to each age in seconds."""
_LONGEST_WAIT_S = 15.0
_SECRET_HEADER = "X-Webhook-Secret"  # noqa: S105 - the name of a header
_PURPOSE = "image_webhooks"
SOURCE = "image_host"


def open_host(services: Services, app_id: str, account: str) -> VendorAccess[None, MidjourneyHost]:
    """Open a host. Raises `ConfigInvalid`."""
    return services.vendors.account(IMAGE_HOSTS, app_id, account)


def quota_key(task_id: str) -> str:
    return f"image:{task_id}"


def job_of(task: ImageTask) -> PollImageTask:
    return PollImageTask(app_id=task.app_id, uid=task.uid, task_id=task.task_id)


async def poll_later(conn: Connection, task: ImageTask, *, in_s: float) -> None:
    """Replace the waiting job of a task, if any, by the next one. `conn` is in a transaction."""
    key = f"image:{task.task_id}"
    await cancel_job(conn, key=key)
    await enqueue(conn, job_of(task), key=key, run_at=due_in(in_s) if in_s else None)


async def poll_image_task(services: Services, job: PollImageTask) -> None:
    """Read a task from its host and store its state. The next poll follows until the task has ended or is lost."""
    async with services.database.connection() as conn:
        task = await image_tasks.find(conn, job.app_id, job.uid, task_id=job.task_id)
    if task is None or task.ended_at is not None:
        return
    age_s = (services.clock.now(task.app_id) - task.created_at).total_seconds()
    if task.host_task_id is None:
        if age_s < UNSUBMITTED_S:
            async with services.database.transaction() as conn:
                await poll_later(conn, task, in_s=UNSUBMITTED_S - age_s)
        else:
            await fail(services, task, "the host has not accepted the task")
        return
    await _advance(services, task, task.host_task_id, age_s=age_s)


async def _advance(services: Services, task: ImageTask, host_task_id: str, *, age_s: float) -> None:
    host_task, image_key, error = None, None, None
    try:
        access = open_host(services, task.app_id, task.account)
        host_task = await access.call(None, lambda host: host.fetch(host_task_id), within_s=_FETCH_S)
        if host_task.status == "finished" and (url := host_task.task_result.source_url):
            image_key = await _copy(services, access, task, url=url)
    except ServiceError as raised:
        # A later read may succeed, even after a refusal: keys are corrected, and hosts learn of new tasks.
        error = raised
        log.warning("image_task.not_read", app_id=task.app_id, task_id=task.task_id, error=str(raised))
    ended = error is None and host_task is not None and host_task.status in {"finished", "failed"}
    if ended and host_task is not None:
        await _end(services, task, host_task, image_key=image_key)
    elif services.clock.now(task.app_id) >= task.lost_at:
        await fail(services, task, _lost(services, error), host_task=host_task)
    else:
        await _continue(services, task, host_task, in_s=_wait_s(age_s))


async def _copy(
    services: Services, access: VendorAccess[None, MidjourneyHost], task: ImageTask, *, url: str
) -> str:
    try:
        async with asyncio.timeout(_COPY_S):
            return await copy_image(services, access.http, access.account, task, url=url)
    except TimeoutError:
        raise TimedOut(access.platform, f"did not send the image within {_COPY_S} s", retryable=True) from None


def _lost(services: Services, error: ServiceError | None) -> str:
    """Return why a task is given up, as its user reads it. The log has the whole cause."""
    if error is None:
        return "the host did not finish the task in time"
    return f"the image was not read: {told_cause(error, in_full=services.settings.development)}"


def _wait_s(age_s: float) -> float:
    return next((wait_s for up_to_s, wait_s in _WAITS_S if age_s < up_to_s), _LONGEST_WAIT_S)


async def _continue(services: Services, task: ImageTask, host_task: HostTask | None, *, in_s: float) -> None:
    async with services.database.transaction() as conn:
        if host_task is not None and host_task.status not in {"finished", "failed"}:
            await image_tasks.set_progress(
                conn, task.app_id, task.uid,
                task_id=task.task_id, status=host_task.status, host_task=_stored(host_task),
            )  # fmt: skip
        await poll_later(conn, task, in_s=in_s)


async def fail(services: Services, task: ImageTask, message: str, *, host_task: HostTask | None = None) -> None:
    """End a task as failed, for a reason that the host has not given."""
    stored = _stored(host_task) if host_task is not None else dict(task.host_task or {})
    result = Result.model_validate(stored.get("task_result") or {}).model_dump()
    stored["task_result"] = result | {"message": message, "error_messages": [message]}
    stored["status"] = "failed"
    log.warning("image_task.lost", app_id=task.app_id, task_id=task.task_id, error=message)
    await _end(services, task, HostTask.model_validate(stored), image_key=None)


async def _end(services: Services, task: ImageTask, host_task: HostTask, *, image_key: str | None) -> None:
    """End a task, and return its quota if it has failed. Both happen once, however often this is called."""
    now, status = services.clock.now(task.app_id), host_task.status
    async with services.database.transaction() as conn:
        ended = await image_tasks.end_task(
            conn, task, status=status, host_task=_stored(host_task), image_key=image_key, now=now
        )
        if ended and status == "failed":
            await quotas.give_back(
                conn, task.app_id, task.uid, key=quota_key(task.task_id), now=now, sinks=services.sinks
            )
    if ended:
        log.info("image_task.ended", app_id=task.app_id, task_id=task.task_id, type=task.type, status=status)


def _stored(host_task: HostTask) -> dict[str, Any]:
    return host_task.model_dump(by_alias=True)


def webhook_of(services: Services, task: ImageTask) -> HostWebhook | None:
    """Return where the host reports the end of a task, or `None` if the host cannot reach this server.

    The host returns the secret, which names the task. Thus a task is found even if its id at the host is unknown,
    because the process that submitted it died.
    """
    settings = services.settings
    if not settings.has_public_url:
        return None
    url = f"{settings.public_url}/bp/webhook/{SOURCE}/{task.app_id}/{task.account}"
    return HostWebhook(
        url, f"{task.task_id}.{_proof(services.keyring.derive(_PURPOSE), task.app_id, task.task_id)}"
    )


def _proof(key: bytes, app_id: str, task_id: str) -> str:
    return hmac.new(key, f"{app_id}\n{task_id}".encode(), sha256).hexdigest()


def _is_proof(keyring: Keyring, app_id: str, task_id: str, given: str) -> bool:
    proofs = [_proof(key, app_id, task_id) for key in keyring.derive_all(_PURPOSE)]
    return any(hmac.compare_digest(proof.encode(), given.encode("utf-8", "replace")) for proof in proofs)


class _Reported(Model):
    task_id: str = Field(min_length=1, max_length=255)
    status: str = Field(default="", max_length=64)


class _Wrapped(Model):
    """The form of newer gateways."""

    data: _Reported | None = None


def _reported(body: bytes) -> _Reported:
    """Return the task in a webhook. Raises `InvalidParameter`."""
    return _Wrapped.read(body).data or _Reported.read(body)


def _without_texts(body: bytes) -> bytes:
    """Return the body without the texts of users that a task contains."""
    return dumps(_reported(body).model_dump())


async def _verify(services: Services, delivery: Delivery) -> Verified:
    platform_config(services, VENDOR_ACCOUNTS, delivery)
    task_id, _, proof = delivery.headers.get(_SECRET_HEADER, "").partition(".")
    if not _is_proof(services.keyring, delivery.app_id, task_id, proof):
        raise InvalidSignature
    return Verified(event_id=f"{task_id}:{_reported(delivery.body).status}")


async def _work(services: Services, webhook: Webhook) -> None:
    """Read the task from the host. The status in the webhook is not used."""
    state = webhook.state
    task_id = webhook.headers.get(_SECRET_HEADER, "").partition(".")[0]
    async with services.database.connection() as conn:
        task = await image_tasks.of_account(conn, state.app_id, account=state.config, task_id=task_id)
        if task is None:
            return
        reported = _reported(webhook.body)
        await image_tasks.set_submitted(conn, task.app_id, task.uid, task_id=task_id, host_task_id=reported.task_id)
    await poll_image_task(services, job_of(task))


IMAGE_WEBHOOKS = WebhookSource(
    SOURCE,
    "Receive reports of images from their host.",
    _verify,
    _work,
    headers=(_SECRET_HEADER,),
    stored=_without_texts,
)
