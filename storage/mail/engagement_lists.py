"""Emails, predictions and image tasks of all users as operators see them, without their contents."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from storage.postgres.database import Connection
from storage.postgres.directions import directed


@dataclass(frozen=True, slots=True)
class ListedMail:
    mail_id: str
    app_id: str
    uid: str
    strategy: str
    status: str
    created_at: datetime
    sent_at: datetime | None
    opens: int
    machine_opens: int


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A prediction or an image task, with its id at its host."""

    task_id: str
    app_id: str
    uid: str
    strategy: str
    account: str
    what: str | None
    """The model of a prediction, if its own endpoint is called, or the type of an image task."""
    host_id: str | None
    status: str
    error: str
    created_at: datetime
    ended_at: datetime | None


class Filter(NamedTuple):
    """Selects entries. The fields are parameters of the SQL statement; `None` matches all."""

    app_id: str | None
    strategy: str | None
    status: str | None


TaskKind = Literal["prediction", "image"]
_WHERE = """
where ($1::text is null or app_id = $1) and ($2::text is null or strategy = $2)
and ($3::text is null or status = $3) and ($4::text is null or {key} {{compare}} $4)
order by {key} {{order}} limit $5
"""
_MAILS = f"""
select mail_id, app_id, uid, strategy, status, created_at, sent_at, opens, machine_opens from mails
{_WHERE.format(key="mail_id")}
"""
_TASKS: dict[TaskKind, str] = {
    "prediction": f"""
        select prediction_id as task_id, app_id, uid, strategy, account, model as what, host_id, status, error,
            created_at, ended_at
        from predictions {_WHERE.format(key="prediction_id")}""",
    "image": f"""
        select task_id, app_id, uid, strategy, account, type as what, host_task_id as host_id, status,
            coalesce(host_task ->> 'failReason', host_task ->> 'fail_reason', '') as error, created_at, ended_at
        from image_tasks {_WHERE.format(key="task_id")}""",
}


async def mails(
    conn: Connection, which: Filter, *, oldest_first: bool = False, before: str | None, size: int
) -> list[ListedMail]:
    """Return emails, the newest first unless `oldest_first`; with `before`, those that follow that one."""
    statement = directed(_MAILS, oldest_first=oldest_first)
    return [ListedMail(**row) for row in await conn.fetch(statement, *which, before, size)]


async def tasks(
    conn: Connection, which: Filter, *, kind: TaskKind, oldest_first: bool = False, before: str | None, size: int
) -> list[ListedTask]:
    """Return predictions or image tasks, with `oldest_first` and `before` as in `mails`."""
    statement = directed(_TASKS[kind], oldest_first=oldest_first)
    return [ListedTask(**row) for row in await conn.fetch(statement, *which, before, size)]
