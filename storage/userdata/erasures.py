"""The erasure of deactivated users beyond `USER_TABLES`, and the rows that record it (§3.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from storage.accounts import bans, sessions
from storage.accounts.identities import LinkedIdentity, details_of
from storage.accounts.password_resets import SendReset
from storage.accounts.profiles import FetchProfile
from storage.accounts.session_cache import SessionCache
from storage.accounts.sms import SendSms
from storage.configs.kinds.sign_in import PLATFORMS
from storage.jobs import jobs
from storage.jobs.jobs import ExportUser, Job, due_in, enqueue
from storage.mail.mail import SendMail
from storage.mail.recipients import recipients_of_user
from storage.payments import endings
from storage.postgres.database import Connection
from storage.secrets import Keyring
from storage.tasks.image_tasks import PollImageTask
from storage.tasks.predictions import CancelPrediction, FollowPrediction
from storage.userdata.freezes import EndFreeze
from storage.userdata.tables import OWN, USER_TABLES

Cause = Literal["confirm", "freeze_end", "operator"]
"""Why a user was deactivated: because the user confirmed it, the freeze had ended, or an operator did it."""
RevocationState = Literal["pending", "revoked", "unsupported", "no_token", "failed"]
"""The state of a token. `failed`: it is pending, but no job revokes it any more."""

DELETED_JOBS = tuple(
    kind.task
    for kind in (
        CancelPrediction,
        EndFreeze,
        ExportUser,
        FetchProfile,
        FollowPrediction,
        PollImageTask,
        SendMail,
        SendReset,
        SendSms,
    )
)
"""The kinds of jobs that are deleted if they are waiting or held, and concern the user."""
NOT_SEARCHED: Mapping[str, str] = {
    "backups": "copies of the database and of files, as long as the operator keeps them",
    "logs": "user ids in lines of the server's log",
    "webhooks": "calls by payment platforms, as they arrived",
    "speech_cache": "spoken texts without the user who heard them, until they expire",
    "idempotent_responses": "responses to requests with an Idempotency-Key, until they expire",
}
"""Places that may contain data of a user, but that neither the deactivation nor the count of kept rows searches."""


class EraseUser(Job):
    """Delete the conversations and files of a deactivated user. Retried for up to a day."""

    task: ClassVar[str] = "erase_user"
    attempts: ClassVar[int] = 30
    timeout_s: ClassVar[float] = 3000
    app_id: str
    uid: str
    last: bool = False
    """Whether this is the second run, which deletes data of streams that began before the deactivation."""


class RevokeToken(Job):
    """Revoke the token of a deactivated user at a sign-in platform. Retried for up to a day."""

    task: ClassVar[str] = "revoke_token"
    attempts: ClassVar[int] = 30
    timeout_s: ClassVar[float] = 60
    app_id: str
    uid: str
    platform: str


@dataclass(frozen=True, slots=True)
class Revocation:
    platform: str
    state: RevocationState
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class Erasure:
    app_id: str
    uid: str
    cause: Cause
    deactivated_at: datetime
    deleted: Mapping[str, int]
    """The number of deleted rows and files by kind."""
    kept: Mapping[str, int]
    """The current number of rows in tables whose rows are kept and counted."""
    erased_at: datetime | None
    """`None` until everything is deleted and no stream can store more data."""
    revocations: tuple[Revocation, ...] = ()

    @property
    def complete(self) -> bool:
        return self.erased_at is not None and all(
            revocation.settled_at is not None for revocation in self.revocations
        )


_DEACTIVATE = """
update users set status = 'deactivated', name = '', cuid = '', last_login = create_time,
    freeze_time = null, close_time = null, ban_reason = ''
where app_id = $1 and uid = $2
"""
_ADD = "insert into erasures (app_id, uid, cause, deactivated_at, deleted) values ($1, $2, $3, $4, $5)"


async def deactivate(
    conn: Connection,
    app_id: str,
    uid: str,
    *,
    linked: Sequence[LinkedIdentity],
    cause: Cause,
    now: datetime,
    cache: SessionCache,
    keyring: Keyring,
) -> None:
    """Deactivate a user for good, and store the jobs that erase the rest.

    Further jobs revoke the user's tokens and cancel the user's subscriptions.

    `conn` is in a transaction that has locked the user. `linked` are all identities of the user.
    """
    recipients = await recipients_of_user(conn, app_id, uid, keyring=keyring)
    await sessions.reread(conn, app_id, uid, cache=cache)
    await bans.keep_identities(conn, app_id, uid, linked=linked, keyring=keyring, now=now)
    deleted = {"jobs": await jobs.erase(conn, app_id, uid, tasks=DELETED_JOBS, recipients=recipients)}
    for table in reversed(USER_TABLES):
        if table.erased:
            deleted[table.erased_as or table.name] = await table.erase(conn, app_id, uid)
    await conn.execute(_DEACTIVATE, app_id, uid)
    await conn.execute(_ADD, app_id, uid, cause, now, deleted)
    await _revoke_later(conn, app_id, uid, linked=linked, keyring=keyring, now=now)
    await endings.end_subscriptions_later(conn, app_id, uid)
    await enqueue(conn, EraseUser(app_id=app_id, uid=uid))


_ADD_REVOCATION = """
insert into revocations (app_id, uid, platform, token, state, settled_at) values ($1, $2, $3, $4, $5, $6)
"""


async def _revoke_later(
    conn: Connection,
    app_id: str,
    uid: str,
    *,
    linked: Sequence[LinkedIdentity],
    keyring: Keyring,
    now: datetime,
) -> None:
    for identity in linked:
        if identity.platform not in PLATFORMS:
            continue
        token = details_of(identity, app_id, keyring=keyring).refresh_token
        key = (app_id, uid, identity.platform)
        if not token:
            # Only refresh tokens can be revoked, and only those that a master key still decrypts.
            stored = identity.access_token or identity.refresh_token
            await conn.execute(_ADD_REVOCATION, *key, None, "unsupported" if stored else "no_token", now)
            continue
        await conn.execute(_ADD_REVOCATION, *key, keyring.encrypt(token, aad=_aad(*key)), "pending", None)
        await enqueue(conn, RevokeToken(app_id=app_id, uid=uid, platform=identity.platform))


_PENDING = "select token from revocations where app_id = $1 and uid = $2 and platform = $3 and state = 'pending'"


async def pending_token(conn: Connection, job: RevokeToken, *, keyring: Keyring) -> str | None:
    """Return the token to revoke, or `None` if it has been revoked. Raises `DecryptionFailed`."""
    encrypted: str | None = await conn.fetchval(_PENDING, job.app_id, job.uid, job.platform)
    return None if encrypted is None else keyring.decrypt(encrypted, aad=_aad(job.app_id, job.uid, job.platform))


_SETTLE = """
update revocations set state = $4, token = null, settled_at = $5
where app_id = $1 and uid = $2 and platform = $3 and state = 'pending'
"""


async def settle_revocation(conn: Connection, job: RevokeToken, *, state: RevocationState, now: datetime) -> None:
    """Record the outcome of a revocation, and delete the token."""
    await conn.execute(_SETTLE, job.app_id, job.uid, job.platform, state, now)


def _aad(app_id: str, uid: str, platform: str) -> str:
    return f"revocations/{app_id}/{uid}/{platform}"


_COUNT = """
update erasures set erased_at = coalesce(erased_at, $5), deleted = deleted || jsonb_build_object(
    'jobs', coalesce((deleted ->> 'jobs')::bigint, 0) + $6::bigint,
    'conversations', coalesce((deleted ->> 'conversations')::bigint, 0) + $3::bigint,
    'files', coalesce((deleted ->> 'files')::bigint, 0) + $4::bigint)
where app_id = $1 and uid = $2
"""


async def record_erased(
    conn: Connection, job: EraseUser, *, conversations: int, files: int, erased_at: datetime | None
) -> None:
    """Delete the user's jobs that ran during the deactivation and wait again, and update the deleted counts.

    `erased_at`: the time from which no data is left, or `None` if there may be some. `conn` is in a transaction.
    """
    left = await jobs.erase(conn, job.app_id, job.uid, tasks=DELETED_JOBS)
    await conn.execute(_COUNT, job.app_id, job.uid, conversations, files, erased_at, left)


async def erase_later(conn: Connection, job: EraseUser, *, in_s: float) -> None:
    await enqueue(conn, job, run_at=due_in(in_s))


_FIND = """
select app_id, uid, cause, deactivated_at, deleted, erased_at from erasures where app_id = $1 and uid = $2
"""
_REVOCATIONS = f"""
select platform, settled_at, case when state = 'pending' and not exists (
    select from procrastinate_jobs where task_name = '{RevokeToken.task}' and status in ('todo', 'doing')
    and args ->> 'app_id' = $1 and args ->> 'uid' = $2 and args ->> 'platform' = platform)
    then 'failed' else state end as state
from revocations where app_id = $1 and uid = $2 order by platform
"""


_COUNT_KEPT = " union all ".join(
    f"select '{table.name}', count(*) from {table.name} where {OWN}"
    for table in USER_TABLES
    if table.kept and table.counted
)


async def find(conn: Connection, app_id: str, uid: str) -> Erasure | None:
    """Return the erasure of a deactivated user, or `None` if there is no such user."""
    row = await conn.fetchrow(_FIND, app_id, uid)
    if row is None:
        return None
    revoked = await conn.fetch(_REVOCATIONS, app_id, uid)
    kept = {row[0]: row[1] for row in await conn.fetch(_COUNT_KEPT, app_id, uid)}
    return Erasure(**row, kept=kept, revocations=tuple(Revocation(**revocation) for revocation in revoked))
