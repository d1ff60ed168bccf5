"""Held jobs, for operators: why they are held, in groups for the same reason, and what is done with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from storage.jobs.failures import UNKNOWN
from storage.jobs.jobs import IS_HELD, run_now
from storage.operators.audit import Action, Origin, Subject, record_change
from storage.postgres.database import Connection
from storage.postgres.directions import directed

ManyAction = Literal["retry", "drop"]
AT_ONCE = 1000
"""How many jobs one operation changes at most, so that it locks their rows for a moment only."""
_GROUPS = 100


class Filter(NamedTuple):
    """Selects held jobs. The fields are parameters of the SQL statements; `None` matches all."""

    task: str | None = None
    app_id: str | None = None
    error_type: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that failed in all its attempts. The fields are columns."""

    job_id: int
    task: str
    message: dict[str, Any]
    attempts: int
    held_at: datetime
    error_type: str
    error: str | None
    error_group: str
    process: str | None
    configs: list[list[str]]
    """App, kind and name of each config that the last attempt has read, the newest at the end."""
    uid: str | None
    """The user whom the job concerns."""
    order_id: str | None
    """The payment or subscription of the user that the job concerns."""


_ERROR_TYPE = f"coalesce(failure.error_type, '{UNKNOWN}')"
_GROUP = f"coalesce(failure.error_group, job.task_name || '.{UNKNOWN}')"
_HELD_AT = """
coalesce(failure.failed_at, (
    select max(at) from procrastinate_events where job_id = job.id and type in ('failed', 'aborted')), now())
"""
_FROM = f"""
from procrastinate_jobs job left join job_failures failure on failure.job_id = job.id
where job.{IS_HELD} and ($1::text is null or job.task_name = $1)
and ($2::text is null or job.args ->> 'app_id' = $2)
and ($3::text is null or {_ERROR_TYPE} = $3) and ($4::text is null or {_GROUP} = $4)
"""
# Jobs name a user, or something that belongs to one: an order, a withdrawal, an identity.
_PAGE = f"""
with page as (
    select job.id as job_id, job.task_name as task, job.args as message, job.attempts, {_HELD_AT} as held_at,
        {_ERROR_TYPE} as error_type, failure.message as error, {_GROUP} as error_group, failure.process,
        coalesce(failure.configs, '[]') as configs
    {_FROM} and ($5::bigint is null or job.id {{compare}} $5) order by job.id {{order}} limit $6
)
select page.*,
    coalesce(
        message ->> 'uid', refund.uid, replaced.uid, second.uid, paid.uid, withdrawal.uid, identity.uid) as uid,
    coalesce(refund.row_id, replaced.row_id, second.row_id, paid.payment_id) as order_id
from page
left join wallet_orders refund on task = 'refund_order' and refund.row_id = message ->> 'row_id'
left join wallet_subscriptions replaced
    on task = 'end_replaced_subscription' and replaced.row_id = message ->> 'row_id'
left join card_subscriptions second
    on task = 'end_second_card_subscription' and second.row_id = message ->> 'row_id'
left join card_refunds card_refund on task = 'refund_card' and card_refund.row_id = message ->> 'row_id'
left join card_payments paid on paid.app_id = card_refund.app_id and paid.config = card_refund.config
    and paid.intent_id = card_refund.intent_id
left join withdrawals withdrawal
    on task = 'pay_out' and withdrawal.withdrawal_id = message ->> 'withdrawal_id'
left join identities identity on task = 'fetch_profile' and identity.app_id = message ->> 'app_id'
    and identity.platform = message ->> 'platform' and identity.social_id = message ->> 'social_id'
order by job_id {{order}}
"""


async def page(
    conn: Connection, which: Filter, *, oldest_first: bool = False, before: int | None, size: int
) -> list[HeldJob]:
    """Return held jobs, the newest first unless `oldest_first`; with `before`, those that follow that job."""
    statement = directed(_PAGE, oldest_first=oldest_first)
    return [HeldJob(**row) for row in await conn.fetch(statement, *which, before, size)]


@dataclass(frozen=True, slots=True)
class HeldGroup:
    """The held jobs of one kind that failed for the same reason. The fields are columns."""

    group: str
    task: str
    error_type: str
    error: str | None
    """The message of the newest of these failures."""
    count: int
    first_at: datetime
    last_at: datetime


_ALL_GROUPS = f"""
select {_GROUP} as group, job.task_name as task, {_ERROR_TYPE} as error_type, count(*) as count,
    (array_agg(failure.message order by job.id desc))[1] as error,
    min({_HELD_AT}) as first_at, max({_HELD_AT}) as last_at
{_FROM} group by 1, 2, 3 order by count(*) desc, 1 limit {_GROUPS}
"""


async def groups(conn: Connection, which: Filter) -> list[HeldGroup]:
    """Return the groups of held jobs, the largest first, at most 100."""
    return [HeldGroup(**row) for row in await conn.fetch(_ALL_GROUPS, *which)]


_LOCK = f"select task_name, attempts from procrastinate_jobs where id = $1 and {IS_HELD} for update"


async def retry(conn: Connection, job_id: int, *, origin: Origin) -> bool:
    """Run a held job again, for an operator. Return `False` if there is no such held job.

    `conn` is in a transaction.
    """
    held = await conn.fetchrow(_LOCK, job_id)
    if held is None:
        return False
    await run_now(conn, job_id)
    before = {"job": held["task_name"], "status": "failed", "attempts": held["attempts"]}
    after = before | {"status": "todo", "attempts": 0}
    await record_change(
        conn, origin, action="job.retry", subject=Subject(None, "job", str(job_id)), before=before, after=after
    )
    return True


async def drop(conn: Connection, job_id: int, *, origin: Origin) -> bool:
    """Delete a held job. Return `False` if there is no such held job. `conn` is in a transaction.

    Its message is not recorded, because it may hold personal data that is to be deleted.
    """
    held = await conn.fetchrow(_LOCK, job_id)
    if held is None:
        return False
    await conn.execute("delete from procrastinate_jobs where id = $1", job_id)
    before = {"job": held["task_name"], "status": "failed", "attempts": held["attempts"]}
    await record_change(conn, origin, action="job.drop", subject=Subject(None, "job", str(job_id)), before=before)
    return True


# Jobs that another operator changes at the same moment are left to that operator.
_PICKED = f"select job.id {_FROM} order by job.id limit {AT_ONCE} for update of job skip locked"
_RETRY_MANY = f"""
with picked as ({_PICKED})
update procrastinate_jobs set status = 'todo', attempts = 0, priority = 0, scheduled_at = null, queueing_lock = null
from picked where procrastinate_jobs.id = picked.id returning picked.id
"""
_DROP_MANY = f"""
with picked as ({_PICKED})
delete from procrastinate_jobs using picked where procrastinate_jobs.id = picked.id returning picked.id
"""
_MANY: Mapping[ManyAction, tuple[str, Action]] = {
    "retry": (_RETRY_MANY, "job.retry"),
    "drop": (_DROP_MANY, "job.drop"),
}


@dataclass(frozen=True, slots=True)
class Changed:
    changed: int
    remaining: int
    """How many jobs of the group are still held."""


async def change_group(conn: Connection, group: str, *, action: ManyAction, origin: Origin) -> Changed:
    """Run the held jobs of a group again, or delete them, at most 1000. `conn` is in a transaction.

    Each job is changed once, however many operators do so at the same time.
    """
    statement, audited = _MANY[action]
    which = Filter(group=group)
    changed = sorted(row["id"] for row in await conn.fetch(statement, *which))
    if changed:
        before = {"status": "failed", "count": len(changed), "jobs": changed}
        after = {"status": "todo", "count": len(changed)} if action == "retry" else None
        subject = Subject(None, "job", group)
        await record_change(conn, origin, action=audited, subject=subject, before=before, after=after)
    return Changed(len(changed), await conn.fetchval(f"select count(*) {_FROM}", *which))
