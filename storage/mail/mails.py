"""Rows of emails that apps send by their strategies. Opens are matched against them."""

from datetime import datetime
from typing import Literal

from storage.jobs.jobs import enqueue
from storage.mail.mail import SendMail
from storage.postgres.database import Connection, on_conflict
from streams.wire.errors import ServiceError
from streams.wire.model import Model

Outcome = Literal["sent", "waiting", "refused", "suppressed"]


class SendDuplicate(ServiceError):
    """An email of this strategy to this user is being sent. One that waits for a further attempt does not count."""

    error_type = "mail_hub.send_duplicate"
    status = 409


# The job of such a row was deleted, or its outcome could not be stored.
_END_STUCK = """
update mails set status = 'waiting' where app_id = $1 and uid = $2 and strategy = $3 and status = 'sending'
and not exists (select from procrastinate_jobs job where job.id = job_id and job.status in ('todo', 'doing'))
"""
_ADD = """
insert into mails (mail_id, app_id, uid, strategy, recipient, tracked, status, job_id, created_at)
values ($1, $2, $3, $4, $5, $6, 'sending', $7, $8)
"""


async def add(conn: Connection, job: SendMail, *, tracked: bool, now: datetime) -> None:
    """Store an email of a strategy to a user, and the job that sends it. `conn` is in a transaction.

    Raises `SendDuplicate` while another one of the strategy is being sent to the user.
    """
    job_id = await enqueue(conn, job)
    named = (job.mail_id, job.app_id, job.uid, job.strategy, job.recipient)
    await conn.execute(_END_STUCK, job.app_id, job.uid, job.strategy)
    with on_conflict("mails_sending", lambda: SendDuplicate(f"name {job.strategy} is still being sent")):
        await conn.execute(_ADD, *named, tracked, job_id, now)


_IS_OPEN = """
select exists (
    select from suppressions s
    where s.app_id = mails.app_id and address = $2 and s.strategy in ('', mails.strategy))
from mails where mail_id = $1 and status in ('sending', 'waiting')
"""


async def may_send(conn: Connection, mail_id: str, *, to: str) -> bool:
    """Return whether an email is still to be sent. If its address is suppressed, record this."""
    suppressed: bool | None = await conn.fetchval(_IS_OPEN, mail_id, to)
    if suppressed:
        await end_attempt(conn, mail_id, outcome="suppressed", now=None)
    return suppressed is False


_END_ATTEMPT = """
update mails set status = $2, sent_at = $3 where mail_id = $1 and status in ('sending', 'waiting')
"""


async def end_attempt(conn: Connection, mail_id: str, *, outcome: Outcome, now: datetime | None) -> None:
    """Record the outcome of an attempt. `now` is the time at which the email was sent, or `None` if it was not."""
    await conn.execute(_END_ATTEMPT, mail_id, outcome, now)


class SentMail(Model):
    """An email to a user, and how often its tracking pixel was loaded."""

    message_id: str
    strategy: str
    status: str
    """`sending`, `waiting` for a further attempt, `sent`, `refused` or `suppressed`."""
    opens: int
    """By readers."""
    machine_opens: int
    """By programs without a reader."""


_SHOWN = ("strategy", "status", "opens", "machine_opens")
_NEWEST = """
select mail_id, strategy, status, opens, machine_opens from mails where app_id = $1 and uid = $2
order by created_at desc, mail_id desc limit $3
"""


async def newest(conn: Connection, app_id: str, uid: str, *, size: int) -> list[SentMail]:
    """Return the last emails to a user, the newest first."""
    rows = await conn.fetch(_NEWEST, app_id, uid, size)
    return [SentMail(message_id=row["mail_id"], **{name: row[name] for name in _SHOWN}) for row in rows]
