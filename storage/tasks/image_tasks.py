"""Rows of tasks that generate images (§4.20)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from storage.jobs.jobs import Job
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.errors import ItemNotFound, listed
from streams.wire.owned import Owned


class ImageTaskNotFound(ItemNotFound):
    """The user has no task with this `task_id` or `origin_task_id`."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"image task {listed([task_id])} does not exist")


IMAGE_TASK = Owned(ImageTaskNotFound)


class PollImageTask(Job):
    """Read a task from its host. When it has ended, copy its image or give its quota back."""

    task: ClassVar[str] = "poll_image_task"
    attempts: ClassVar[int] = 30
    timeout_s: ClassVar[float] = 180
    app_id: str
    uid: str
    task_id: str


@dataclass(frozen=True, slots=True)
class NewImageTask:
    """A request for a task. `request` has the data of the type, with addresses of files as the user sent them."""

    task_id: str
    operation_id: str
    """Identical for all repeats of a request."""
    strategy: str
    account: str
    """The vendor account, where tasks derived from this one have to be made too."""
    type: str
    request: dict[str, Any]
    origin_task_id: str | None
    lost_at: datetime
    """When a task that has not ended counts as failed."""


@dataclass(frozen=True, slots=True)
class ImageTask:
    app_id: str
    uid: str
    task_id: str
    strategy: str
    account: str
    type: str
    request: dict[str, Any]
    origin_task_id: str | None
    host_task_id: str | None
    """`None` until the host has accepted the task."""
    status: str
    host_task: dict[str, Any] | None
    """The task as the host last sent it."""
    image_key: str | None
    """The file with the copy of its image."""
    created_at: datetime
    lost_at: datetime
    ended_at: datetime | None


_COLUMNS = ", ".join(ImageTask.__slots__)
_ADD = f"""
insert into image_tasks (
    app_id, uid, task_id, operation_id, strategy, account, type, request, origin_task_id, lost_at, created_at,
    status)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'pending') returning {_COLUMNS}
"""


async def add(conn: Connection, app_id: str, uid: str, *, new: NewImageTask, now: datetime) -> ImageTask:
    row = await conn.fetchrow(
        _ADD, app_id, uid, new.task_id, new.operation_id, new.strategy, new.account, new.type, new.request,
        new.origin_task_id, new.lost_at, now,
    )  # fmt: skip
    return ImageTask(**one(row))


_RUNNING = "select count(*) from image_tasks where app_id = $1 and uid = $2 and ended_at is null"


async def count_running(conn: Connection, app_id: str, uid: str) -> int:
    """Return how many tasks of a user have not ended."""
    count: int = await conn.fetchval(_RUNNING, app_id, uid)
    return count


_FIND = f"select {_COLUMNS} from image_tasks where app_id = $1 and uid = $2 and task_id = $3"
_OF_OPERATION = f"""
select {_COLUMNS} from image_tasks where app_id = $1 and uid = $2 and operation_id = $3
"""
_OF_ACCOUNT = f"""
select {_COLUMNS} from image_tasks where app_id = $1 and account = $2 and task_id = $3
"""


async def find(conn: Connection, app_id: str, uid: str, *, task_id: str) -> ImageTask | None:
    row = await conn.fetchrow(_FIND, app_id, uid, task_id)
    return None if row is None else ImageTask(**row)


async def of_operation(conn: Connection, app_id: str, uid: str, *, operation_id: str) -> ImageTask | None:
    """Return the task that an earlier attempt of the same request has stored."""
    row = await conn.fetchrow(_OF_OPERATION, app_id, uid, operation_id)
    return None if row is None else ImageTask(**row)


async def of_account(conn: Connection, app_id: str, *, account: str, task_id: str) -> ImageTask | None:
    """Return a task of any user that was made with a vendor account."""
    row = await conn.fetchrow(_OF_ACCOUNT, app_id, account, task_id)
    return None if row is None else ImageTask(**row)


_SUBMITTED = """
update image_tasks set host_task_id = $4
where app_id = $1 and uid = $2 and task_id = $3 and host_task_id is null and ended_at is null
"""


async def set_submitted(conn: Connection, app_id: str, uid: str, *, task_id: str, host_task_id: str) -> None:
    """Store the host's id of a task that has none yet."""
    await conn.execute(_SUBMITTED, app_id, uid, task_id, host_task_id)


_PROGRESS = """
update image_tasks set status = $4, host_task = $5
where app_id = $1 and uid = $2 and task_id = $3 and ended_at is null
"""


async def set_progress(
    conn: Connection, app_id: str, uid: str, *, task_id: str, status: str, host_task: dict[str, Any]
) -> None:
    """Store the progress of a task that has not ended."""
    await conn.execute(_PROGRESS, app_id, uid, task_id, status, host_task)


_END = """
update image_tasks set status = $4, host_task = $5, image_key = $6, ended_at = $7
where app_id = $1 and uid = $2 and task_id = $3 and ended_at is null returning true
"""


async def end_task(
    conn: Connection,
    task: ImageTask,
    *,
    status: str,
    host_task: dict[str, Any],
    image_key: str | None,
    now: datetime,
) -> bool:
    """Store the end of a task. Return `False` if it has ended already."""
    values = (task.app_id, task.uid, task.task_id, status, host_task, image_key, now)
    return await conn.fetchval(_END, *values) is not None


_DELETE = """
delete from image_tasks
where app_id = $1 and uid = $2 and task_id = $3 and host_task_id is null and ended_at is null returning true
"""


async def delete_unsubmitted(conn: Connection, app_id: str, uid: str, *, task_id: str) -> bool:
    """Delete a task. Return `False` if the host has accepted it, or it has ended."""
    return await conn.fetchval(_DELETE, app_id, uid, task_id) is not None
