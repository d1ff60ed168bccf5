"""Exports of users' data: at most one per user, and the rows that it contains."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from storage.accounts.login_failures import OF_USER
from storage.jobs.jobs import ExportUser, RemoveObjects, enqueue
from storage.operators.audit import Origin, Subject, record
from storage.postgres.database import Connection
from streams.wire.ids import new_id


@dataclass(frozen=True, slots=True)
class Export:
    app_id: str
    uid: str
    export_id: str
    requested_at: datetime
    finished_at: datetime | None
    """`None` until the file is complete."""
    failed: bool
    """Whether the file is not complete and no job writes it: its job is held or was deleted."""

    @property
    def object_key(self) -> str:
        return object_key(self.app_id, self.uid, self.export_id)


def object_key(app_id: str, uid: str, export_id: str) -> str:
    """Return the key of the file of an export."""
    return f"exports/{app_id}/{uid}/{export_id}.json"


_HAS_JOB = f"""
exists (
    select from procrastinate_jobs where task_name = '{ExportUser.task}' and status in ('todo', 'doing')
    and args ->> 'export_id' = user_exports.export_id)
"""
_COLUMNS = f"""
app_id, uid, export_id, requested_at, finished_at, finished_at is null and not {_HAS_JOB} as failed
"""
_FIND = f"select {_COLUMNS} from user_exports where app_id = $1 and uid = $2"  # noqa: S608 - constants
_LOCK = f"{_FIND} for update"
_BEGIN = f"""
insert into user_exports (app_id, uid, export_id, requested_at) values ($1, $2, $3, $4)
on conflict (app_id, uid) do update
set export_id = excluded.export_id, requested_at = excluded.requested_at, finished_at = null
where user_exports.finished_at is not null or not {_HAS_JOB}
returning export_id
"""  # noqa: S608 - constants


async def find(conn: Connection, app_id: str, uid: str) -> Export | None:
    """Return the user's last export unless it has expired."""
    row = await conn.fetchrow(_FIND, app_id, uid)
    return None if row is None else Export(**row)


async def request(conn: Connection, app_id: str, uid: str, *, now: datetime, origin: Origin) -> Export:
    """Return the export that is being written, or begin one, which replaces a finished or failed one.

    `conn` is in a transaction.
    """
    earlier = await conn.fetchrow(_LOCK, app_id, uid)
    export_id = await conn.fetchval(_BEGIN, app_id, uid, new_id(), now)
    if export_id is not None:
        await enqueue(conn, ExportUser(app_id=app_id, uid=uid, export_id=export_id))
        if earlier is not None:
            await enqueue(conn, RemoveObjects(keys=[Export(**earlier).object_key]))
        await record(conn, origin, action="user.export", subject=Subject(app_id, "user", uid))
    return Export(**await conn.fetchrow(_FIND, app_id, uid))


_FINISH = """
update user_exports set finished_at = $4 where app_id = $1 and uid = $2 and export_id = $3 returning true
"""


async def finish(conn: Connection, export: Export, *, now: datetime) -> bool:
    """Record that the file of an export is complete. Return false if the export does not exist any more."""
    key = (export.app_id, export.uid, export.export_id)
    return await conn.fetchval(_FINISH, *key, now) is not None


_ERASE = f"delete from user_exports where app_id = $1 and uid = $2 returning {_COLUMNS}"  # noqa: S608 - constants


async def erase(conn: Connection, app_id: str, uid: str) -> int:
    """Delete the export of a user. Return the number of exports."""
    found = [Export(**row) for row in await conn.fetch(_ERASE, app_id, uid)]
    if found:
        await enqueue(conn, RemoveObjects(keys=[export.object_key for export in found]))
    return len(found)


_DELETE = f"""
delete from user_exports where (app_id, uid) in (
    select app_id, uid from user_exports
    where app_id = $1 and coalesce(finished_at, requested_at) < $2 limit $3 for update skip locked)
returning {_COLUMNS}
"""  # noqa: S608 - constants


async def delete_expired(conn: Connection, app_id: str, *, before: datetime, limit: int) -> int:
    """Delete at most `limit` exports that were finished before the given time. Return their number."""
    expired = [Export(**row) for row in await conn.fetch(_DELETE, app_id, before, limit)]
    if expired:
        await enqueue(conn, RemoveObjects(keys=[export.object_key for export in expired]))
    return len(expired)


_ACCOUNT = """
select uid, status, create_time, last_login, name, cuid, freeze_time, close_time
from users where app_id = $1 and uid = $2
"""


async def account(conn: Connection, app_id: str, uid: str) -> dict[str, Any] | None:
    """Return what the user's row says about the user; `None` if there is no such user."""
    row = await conn.fetchrow(_ACCOUNT, app_id, uid)
    return None if row is None else dict(row)


async def identities(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    rows = await conn.fetch(
        "select platform, social_id, openid, xid, create_time, profile from identities"
        " where app_id = $1 and uid = $2 order by 1, 2",
        app_id,
        uid,
    )
    return [dict(row) for row in rows]


_SESSIONS = """
select platform, create_time, last_seen, revoke_time, client_os, user_agent, address
from sessions where app_id = $1 and uid = $2 order by create_time
"""


async def sessions(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    return [dict(row) for row in await conn.fetch(_SESSIONS, app_id, uid)]


_PENDING_EMAILS = "select address, created_at from pending_emails where app_id = $1 and uid = $2"


async def pending_emails(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    """Return the addresses that become the user's once they are proven."""
    return [dict(row) for row in await conn.fetch(_PENDING_EMAILS, app_id, uid)]


_EARLIER_EMAILS = "select address, replaced_at from earlier_emails where app_id = $1 and uid = $2 order by 2, 1"


async def earlier_emails(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    """Return the addresses that the user had before and can restore."""
    return [dict(row) for row in await conn.fetch(_EARLIER_EMAILS, app_id, uid)]


_NETWORKS = "select network, last_used_at from login_networks where app_id = $1 and uid = $2 order by network"


async def login_networks(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    """Return the networks from which the user has logged in by password."""
    return [dict(row) for row in await conn.fetch(_NETWORKS, app_id, uid)]


_WITHDRAWALS = """
select withdrawal_id, app_withdraw_id, request, platform, amount, currency, receiver, status, reason,
    created_at, paid_at
from withdrawals where app_id = $1 and uid = $2 order by created_at
"""


async def withdrawals(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    return [dict(row) for row in await conn.fetch(_WITHDRAWALS, app_id, uid)]


_PREDICTIONS = """
select prediction_id, strategy, model, body, status, output, error, created_at, ended_at from predictions
where app_id = $1 and uid = $2 order by prediction_id
"""


async def predictions(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    """Return the predictions of a user, with their inputs and outputs as JSON."""
    return [dict(row) for row in await conn.fetch(_PREDICTIONS, app_id, uid)]


_MAILS = """
select mail_id, strategy, status, created_at, sent_at, opens from mails
where app_id = $1 and uid = $2 order by mail_id
"""


async def mails(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    """Return the emails that were sent for the user."""
    return [dict(row) for row in await conn.fetch(_MAILS, app_id, uid)]


_LOGIN_FAILURES = f"""
select failure_id, operation, platform, social_id, error_type, failed_at from login_failures
where failure_id in ({OF_USER}) and failure_id > $3 order by failure_id limit $4
"""  # noqa: S608 - constants


async def login_failures(
    conn: Connection, app_id: str, uid: str, *, after: str, limit: int
) -> list[dict[str, Any]]:
    """Return at most `limit` failed logins whose ids come after `after`, ordered by id.

    Their steps are left out, because they say what the app's configs allow, and nothing about the user.
    """
    return [dict(row) for row in await conn.fetch(_LOGIN_FAILURES, app_id, uid, after, limit)]


_CONVERSATIONS = """
select conversation_id, created_at, updated_at from conversations
where app_id = $1 and uid = $2 and conversation_id > $3 order by conversation_id limit $4
"""


async def conversations(conn: Connection, app_id: str, uid: str, *, after: str, limit: int) -> list[dict[str, Any]]:
    """Return at most `limit` conversations whose ids come after `after`, ordered by id."""
    return [dict(row) for row in await conn.fetch(_CONVERSATIONS, app_id, uid, after, limit)]


_ASSET_ENTRIES = """
select key, kind, name, subscription, quantity, starts_at, ends_at, platform, product_id, bp_product_id, receipt_id,
    origin, entered_at
from asset_entries where app_id = $1 and uid = $2 order by entry_id
"""


async def asset_entries(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    return [dict(row) for row in await conn.fetch(_ASSET_ENTRIES, app_id, uid)]


_SHARE_GROUPS = """
select name, subscription, code, quota, created_at, false as joined from share_groups where app_id = $1 and uid = $2
union all
select name, '', '', null, joined_at, true from share_members join share_groups using (group_id)
where share_members.app_id = $1 and share_members.uid = $2
"""


async def share_groups(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    """Return the groups that the user owns, and those of others that the user has joined."""
    return [dict(row) for row in await conn.fetch(_SHARE_GROUPS, app_id, uid)]


_WALLET_ORDERS = """
select order_id, status, bp_product_id, amount, currency, created_at from wallet_orders
where app_id = $1 and uid = $2 order by row_id
"""
_WALLET_SUBSCRIPTIONS = """
select subscription_id, status, bp_product_id, plan_id, country, created_at, activated_at, superseded_at
from wallet_subscriptions where app_id = $1 and uid = $2 order by row_id
"""


async def wallet_orders(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    return [dict(row) for row in await conn.fetch(_WALLET_ORDERS, app_id, uid)]


async def wallet_subscriptions(conn: Connection, app_id: str, uid: str) -> list[dict[str, Any]]:
    return [dict(row) for row in await conn.fetch(_WALLET_SUBSCRIPTIONS, app_id, uid)]
