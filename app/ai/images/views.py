"""The answer of the endpoints of images (§4.20)."""

from app.services import Services
from storage.assets.quotas import Counts
from storage.tasks.image_tasks import ImageTask
from streams.wire.model import Model
from vendors.hosts.midjourney import HostTask, Status


class ImageMeta(Model):
    """Times are Unix seconds, 0 if they are not known."""

    account_id: str
    bot_hash: str
    bot_id: int | float
    created_at: int | float
    ended_at: int | float
    frozen_credit: int | float
    model_version: str
    origin_task_id: str
    """The task from which this one is derived. Empty: none."""
    process_mode: str
    quota_frozen: int | float
    started_at: int | float
    task_param: dict[str, str]
    """The parameters of the task as the host knows them."""
    task_request: dict[str, str]
    task_type: str


class ImageResult(Model):
    actions: list[str]
    """The actions that the image allows, such as `upscale1`."""
    credit: int | float
    discord_image_url: str
    error_messages: list[str]
    image_id: str
    image_url: str
    """A link to the copy of the image on this server, valid for a day. Each answer has a new one. Empty
    while there is no image."""
    message: str
    """The text of a description, or the reason why the task has failed."""
    need_retry: bool
    permanent_url: str
    quota_used: int | float
    result_message_id: str
    seed: str
    task_progress: int | float
    """In percent."""


class ImageTaskView(Model):
    meta: ImageMeta
    process_time: int | float
    """Seconds."""
    retry_count: int | float
    status: Status
    """The task has ended if this is `finished` or `failed`. What a failed one has used of a quota is given back."""
    task_id: str
    task_result: ImageResult


class ImageReply(Model):
    """An image task, with the units of its asset that are used."""

    current_count: int
    """Units of the quota that the user has left. 0 if the strategy has no quota."""
    current_total_count: int
    """Free units of the day, and those that the user was granted."""
    data: ImageTaskView


def view(services: Services, task: ImageTask, counts: Counts) -> ImageReply:
    host_task = HostTask.model_validate(task.host_task or {})
    url = "" if task.image_key is None else services.objects.url(task.image_key)
    origin = task.origin_task_id or ""
    meta = host_task.meta.model_dump() | {
        "created_at": host_task.meta.created_at or int(task.created_at.timestamp()),
        "origin_task_id": origin,
        "task_request": {"task_id": origin},
        "task_type": task.type,
    }
    result = host_task.task_result.model_dump() | {
        "discord_image_url": url if host_task.task_result.discord_image_url else "",
        "image_url": url,
        "permanent_url": url,
    }
    shown = {
        "meta": meta,
        "process_time": host_task.process_time,
        "retry_count": host_task.retry_count,
        "status": task.status,
        "task_id": task.task_id,
        "task_result": result,
    }
    return ImageReply(
        current_count=counts.left, current_total_count=counts.total, data=ImageTaskView.model_validate(shown)
    )
