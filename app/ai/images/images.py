"""Generates images by the strategies of an app (§4.20)."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator

from actors.clients.strategies import required_strategy
from app.ai.images.data import ImageData, NewImage
from app.ai.images.files import UserFiles
from app.ai.images.tasks import SUBMIT_S, UNSUBMITTED_S, open_host, poll_later, quota_key, webhook_of
from app.ai.images.tasks import fail as fail_task
from app.ai.images.views import ImageReply, view
from app.http.callers.limits import add_rate_headers
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Path
from app.http.rows.transactions import Transaction
from storage.accounts import users
from storage.assets import quotas
from storage.configs.kinds.images import IMAGES
from storage.configs.kinds.images import Images as Strategy
from storage.configs.kinds.limits import Rate
from storage.postgres.database import Connection
from storage.tasks import image_tasks
from storage.tasks.image_tasks import IMAGE_TASK, ImageTask, NewImageTask
from streams.refusals import REFUSED
from streams.wire.errors import ConfigInvalid, InvalidParameter, RateLimited, ServiceError, TooLarge
from streams.wire.ids import new_id
from streams.wire.model import Model
from vendors.hosts.midjourney import NewTask, TaskRefused

BODY_BYTES = 320 * 1024
INPAINT_BYTES = 8 * 1024 * 1024
_LONGEST_WAIT_S = 300
_WAIT_DIGITS = 6
_FIRST_LOOK_S, _LAST_LOOK_S = 0.2, 1.0
_BUSY_RETRY_S = 5


class ImageTaskPath(Model):
    task_id: Annotated[str, AfterValidator(IMAGE_TASK.validate)]
    """A task of the user."""


async def imagine(call: Call, transaction: Transaction, body: Body[NewImage]) -> ImageReply:
    """Begin a task that generates, changes or describes an image.

    The response has its current state. With the header `Prefer: wait=<seconds>`, the response is sent when the task
    has ended, or after that time, which is at most 300 seconds. To read the task later, call
    `GET /bp/ai/imagine/{task_id}`. A task that fails is not an error: its `status` is `failed`.
    """
    if body.type != "inpaint" and call.request.content.total_bytes > BODY_BYTES:
        raise TooLarge(f"body exceeds {BODY_BYTES} bytes")
    data = body.typed()
    config = required_strategy(call.services.configs, IMAGES, call.app_id, body.strategy)
    async with call.services.database.connection() as conn:
        task = await image_tasks.of_operation(
            conn, call.app_id, call.caller.user, operation_id=transaction.operation_id
        )
    if task is None:
        task = await _begin(call, body, data, config, operation_id=transaction.operation_id)
    task = await _wait(call, task)
    async with transaction.begin() as conn:
        return transaction.answer(await _reply(call, conn, task))


async def read_task(call: Call, path: Path[ImageTaskPath]) -> ImageReply:
    """Read an image task.

    Its image is on this server once `status` is `finished`.
    """
    async with call.services.database.connection() as conn:
        found = await image_tasks.find(conn, call.app_id, call.caller.user, task_id=path.task_id)
        return await _reply(call, conn, IMAGE_TASK.require(path.task_id, found))


async def _reply(call: Call, conn: Connection, task: ImageTask) -> ImageReply:
    quota = None
    with suppress(ConfigInvalid):  # The strategy may have been deleted since the task began.
        quota = call.services.configs.required(IMAGES, call.app_id, task.strategy).value.quota
    now = call.services.clock.now(call.app_id)
    counts = await quotas.counts(conn, call.app_id, call.caller.user, quota=quota, now=now)
    return view(call.services, task, counts)


async def _begin(call: Call, body: NewImage, data: ImageData, config: Strategy, *, operation_id: str) -> ImageTask:
    """Store a task and submit it to its host. If an error is raised, the task no longer exists."""
    services = call.services
    open_host(services, call.app_id, config.account)  # Its config is checked before anything is counted.
    origin = await _origin(call, data, config)
    fields = await _fields(call, body, data, config)
    await _count(call, body.strategy, config)
    now = services.clock.now(call.app_id)
    new = NewImageTask(
        task_id=new_id(),
        operation_id=operation_id,
        strategy=body.strategy,
        account=config.account,
        type=body.type,
        request=_request(body, data),
        origin_task_id=None if origin is None else origin.task_id,
        lost_at=now + timedelta(seconds=config.lost_after_s),
    )
    async with services.database.transaction() as conn:
        await users.lock(conn, call.app_id, call.caller.user)
        running = await image_tasks.count_running(conn, call.app_id, call.caller.user)
        if running >= config.at_once:
            REFUSED.add(1, "image_tasks")
            raise RateLimited(f"{running} image tasks have not ended", retry_after_s=_BUSY_RETRY_S)
        await quotas.use_units(
            conn, call.app_id, call.caller.user,
            key=quota_key(new.task_id), quota=config.quota, now=now, sinks=services.sinks,
        )  # fmt: skip
        task = await image_tasks.add(conn, call.app_id, call.caller.user, new=new, now=now)
        # It finds the task if this process dies before the host has accepted it.
        await poll_later(conn, task, in_s=UNSUBMITTED_S)
    host_task = NewTask(body.type, fields, None if origin is None else origin.host_task_id)
    return await _submit(call, task, host_task)


async def _submit(call: Call, task: ImageTask, new: NewTask) -> ImageTask:
    services, webhook = call.services, webhook_of(call.services, task)
    try:
        access = open_host(services, task.app_id, task.account)
        host_task_id = await access.call(None, lambda host: host.create(new, webhook=webhook), within_s=SUBMIT_S)
    except TaskRefused as refused:
        await fail_task(services, task, str(refused))
        return await _current(call, task)
    except ServiceError:
        if await _forget(call, task):
            raise
        return await _current(call, task)  # The host has sent the webhook, but its response was lost.
    async with services.database.transaction() as conn:
        await image_tasks.set_submitted(
            conn, task.app_id, task.uid, task_id=task.task_id, host_task_id=host_task_id
        )
        await poll_later(conn, task, in_s=0)
    return task


async def _forget(call: Call, task: ImageTask) -> bool:
    """Delete a task that its host has not accepted, and return its quota. Return whether it was deleted."""
    services = call.services
    now = services.clock.now(task.app_id)
    async with services.database.transaction() as conn:
        if not await image_tasks.delete_unsubmitted(conn, task.app_id, task.uid, task_id=task.task_id):
            return False
        key = quota_key(task.task_id)
        await quotas.give_back(conn, task.app_id, task.uid, key=key, now=now, sinks=services.sinks)
    return True


async def _origin(call: Call, data: ImageData, config: Strategy) -> ImageTask | None:
    """Return the task that `data` names. Raises `ImageTaskNotFound`, or `InvalidParameter` if it has no image."""
    task_id: str | None = getattr(data, "origin_task_id", None)
    if task_id is None:
        return None
    IMAGE_TASK.validate(task_id)
    async with call.services.database.connection() as conn:
        found = await image_tasks.find(conn, call.app_id, call.caller.user, task_id=task_id)
    origin = IMAGE_TASK.require(task_id, found)
    if origin.status != "finished" or origin.image_key is None:
        raise InvalidParameter("data.origin_task_id names a task that has no image")
    if origin.account != config.account:
        raise InvalidParameter("data.origin_task_id names a task of a strategy with another account")
    return origin


async def _fields(call: Call, body: NewImage, data: ImageData, config: Strategy) -> dict[str, Any]:
    """Return the fields of the host's call. Files are named by new links, which the host can read for a day."""
    fields = data.model_dump(exclude={"origin_task_id"}, exclude_none=True)
    files = UserFiles(call.services, call.app_id, call.caller.user)
    if "process_mode" in type(data).model_fields:
        fields.setdefault("process_mode", config.process_mode)
    if "--ar " in fields.get("prompt", ""):
        fields.pop("aspect_ratio", None)
    if body.image_url is not None:
        link = await files.link(body.image_url, field="image_url")
        fields["prompt"] = f"{link} {fields['prompt']}"
    if "mask" in fields:
        fields["mask"] = await files.mask(fields["mask"], field="data.mask")
    if "image_url" in fields:
        fields["image_url"] = await files.link(fields["image_url"], field="data.image_url")
    if "image_urls" in fields:
        fields["image_urls"] = [
            await files.link(url, field=f"data.image_urls[{number}]")
            for number, url in enumerate(fields["image_urls"])
        ]
    return fields


def _request(body: NewImage, data: ImageData) -> dict[str, Any]:
    """Return the request as it is stored: without an inline mask."""
    request = data.model_dump(exclude_none=True, exclude={"mask"})
    return request if body.image_url is None else request | {"image_url": body.image_url}


async def _count(call: Call, name: str, config: Strategy) -> None:
    """Count a task against the limit of its strategy. Raises `RateLimited`."""
    if config.per_minute is None:
        return
    rate = Rate(count=config.per_minute, per_s=60)
    who = f"user:{call.caller.user}:{name}"
    count = await call.services.limiter.count(rate, app_id=call.app_id, name="image_strategy", who=who)
    add_rate_headers(call.request, [count])
    count.check()


async def _wait(call: Call, task: ImageTask) -> ImageTask:
    """Return the task as it is once it has ended, or after the time that the client prefers to wait.

    A process that drains does not let clients wait.
    """
    loop, look_s = asyncio.get_running_loop(), _FIRST_LOOK_S
    deadline = loop.time() + preferred_wait_s(call.request.headers.getall("Prefer", []))
    while task.ended_at is None and loop.time() < deadline and not call.services.supervisor.draining:
        await asyncio.sleep(min(look_s, max(0, deadline - loop.time())))
        task, look_s = await _current(call, task), min(_LAST_LOOK_S, look_s * 1.5)
    return task


async def _current(call: Call, task: ImageTask) -> ImageTask:
    async with call.services.database.connection() as conn:
        found = await image_tasks.find(conn, task.app_id, task.uid, task_id=task.task_id)
    return IMAGE_TASK.require(task.task_id, found)


def preferred_wait_s(headers: list[str]) -> int:
    """Return the seconds of `wait` in `Prefer` headers (RFC 7240), at most 300. What is not valid is ignored."""
    for preference in ",".join(headers).split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        digits = value.strip().strip('"')
        if name.strip().lower() == "wait" and digits.isascii() and digits.isdecimal():
            return min(int(digits[:_WAIT_DIGITS]), _LONGEST_WAIT_S)
    return 0
