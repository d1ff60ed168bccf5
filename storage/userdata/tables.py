"""The data about users: one entry per table.

An entry defines how rows are exported, erased and deleted by age, and which of them forbid a deactivation. A test
fails if a table with a column `uid` has no entry.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from storage.accounts import bans, earlier_emails, login_networks
from storage.accounts.emails import not_current
from storage.accounts.login_failures import failures_of_user
from storage.jobs import jobs
from storage.payments.cards.subscriptions import HAS_RENEWING
from storage.postgres.database import Connection
from storage.userdata import exports, retention
from storage.userdata.exported import Exporter, ItemExporter, conversations, paged, row, rows, scores, speech
from storage.userdata.retention import After, KeptApp, Removal, RemovalForAllApps

Eraser = Callable[[Connection, str, str], Awaitable[int]]
OWN = "app_id = $1 and uid = $2"
"""The condition of the rows of a user."""
_OWN_FAILURES = f"failure_id in ({failures_of_user('$1', '$2')})"
_KEEP_CODES = timedelta(days=2)
"""How long expired codes are kept, to recognize them as expired and to count the wrong codes of a day."""
_KEEP_PENDING = timedelta(days=60)
"""How long a pending address is kept after its last link was sent. A link is valid for at most 30 days, and its
user can request another one for 30 more days."""


class Restriction(NamedTuple):
    """A reason to refuse a freeze.

    Code that creates such a reason locks the row of the user (`storage.accounts.users.lock`), so that it does not
    happen concurrently with a freeze.
    """

    reason: str
    """The reason in the client's words."""
    query: str
    """Returns whether it applies. The parameters are the app and the user, whose row is locked."""


@dataclass(frozen=True, slots=True)
class UserTable:
    """How the rows of a table are exported, and what remains of them when the user is deactivated."""

    name: str
    """The name of the table or of other stored data."""
    exported: Exporter | ItemExporter | None = None
    """Returns the list or the item in exports. `None`: exports do not contain the table."""
    exported_as: str = ""
    """The name of the list or item in exports. Empty: `name`."""
    erased: str | Eraser = ""
    """What the deactivation deletes: the rows that match a condition with the app and the user as its parameters,
    or the rows that a function deletes."""
    erased_as: str = ""
    """The name of the deleted data in receipts. Empty: `name`."""
    erased_later: bool = False
    """Whether the job `EraseUser` deletes the data, because there may be much of it, and streams may still store
    more."""
    restriction: Restriction | None = None
    """Rows that forbid a deactivation for as long as they exist. `None`: no row does."""
    kept: str = ""
    """What the kept rows contain. Empty: no rows are kept."""
    counted: bool = True
    """Whether receipts count the kept rows. Rows that no index finds by user are not counted."""
    expires: After | Removal | None = None
    """What the job `RemoveExpired` deletes for an app. `None`: nothing."""
    expires_for_all_apps: RemovalForAllApps | None = None
    """What the job `RemoveExpired` deletes once, because the rows belong to no single app. `None`: nothing."""

    async def erase(self, conn: Connection, app_id: str, uid: str) -> int:
        """Delete the rows that the deactivation of a user deletes. Return their number."""
        if not isinstance(self.erased, str):
            return await self.erased(conn, app_id, uid)
        status: str = await conn.execute(f"delete from {self.name} where {self.erased}", app_id, uid)
        return int(status.rpartition(" ")[2])

    async def remove_expired(self, app: KeptApp) -> int:
        """Delete the expired data of an app. Return the number of rows or files."""
        assert self.expires is not None, "only tables that expire are cleaned up"
        if isinstance(self.expires, After):
            return await self.expires.remove(app, self.name)
        return await self.expires(app)


_FORGET_RECEIVERS = """
update withdrawals set receiver = null, request = '{}' where app_id = $1 and uid = $2 and receiver is not null
"""


async def _forget_receivers(conn: Connection, app_id: str, uid: str) -> int:
    status: str = await conn.execute(_FORGET_RECEIVERS, app_id, uid)
    return int(status.rpartition(" ")[2])


USER_TABLES: Sequence[UserTable] = (
    UserTable(
        "users",
        exported=row("""
            select uid, status, create_time, last_login, name, cuid, freeze_time, close_time,
                banned_at, ban_ends_at, ban_reason
            from users where app_id = $1 and uid = $2"""),
        exported_as="account",
        kept="the user id, the time of its creation, that it is deactivated, and from when to when it was banned",
    ),
    UserTable(
        "banned_identities",
        kept="of a user who was banned: keyed hashes of the identities, until the ban ends",
        expires=After(bans.delete_expired),
    ),
    UserTable(
        "identities",
        exported=rows("""
            select platform, social_id, openid, xid, create_time, profile, verified_at, weakly_proven
            from identities
            where app_id = $1 and uid = $2 order by 1, 2"""),
        erased=OWN,
    ),
    UserTable(
        "pending_emails",
        exported=rows("select address, created_at from pending_emails where app_id = $1 and uid = $2"),
        erased=OWN,
        expires=After("created_at", _KEEP_PENDING),
    ),
    UserTable(
        "earlier_emails",
        exported=rows("""
            select address, replaced_at, weakly_proven from earlier_emails
            where app_id = $1 and uid = $2 order by 2, 1"""),
        erased=OWN,
        expires=After("replaced_at", earlier_emails.RESTORABLE),
    ),
    UserTable(
        "bp_auth_tokens",
        erased="""(app_id, platform, social_id) in (
            select app_id, platform, social_id from identities where app_id = $1 and uid = $2)""",
        expires=After("expires_at"),
    ),
    UserTable(
        "codes",
        erased=f"""code_id in (
            select code_id from codes where app_id = $1 and uid = $2
            union select code_id from codes join (
                select social_id as target from identities
                where app_id = $1 and uid = $2 and platform in ('email', 'phone')
                union {not_current("$1", "$2")}) own using (target)
            where app_id = $1)""",
        expires=After("expires_at", _KEEP_CODES),
    ),
    UserTable("passwords", erased=OWN),
    UserTable(
        "sessions",
        exported=rows("""
            select platform, create_time, last_seen, revoke_time, client_os, user_agent, address from sessions
            where app_id = $1 and uid = $2 order by create_time"""),
        erased=OWN,
        expires=retention.sessions,
    ),
    UserTable(
        "login_networks",
        exported=rows("""
            select network, last_used_at from login_networks where app_id = $1 and uid = $2 order by network"""),
        erased=OWN,
        expires=After("last_used_at", login_networks.KEEP),
    ),
    UserTable(
        "asset_entries",
        exported=rows("""
            select key, kind, name, subscription, quantity, starts_at, ends_at, platform, product_id, bp_product_id,
                receipt_id, origin, entered_at
            from asset_entries where app_id = $1 and uid = $2 order by entry_id"""),
        kept="the purchase history: what was granted and refunded, and when",
    ),
    UserTable("quota_uses", kept="the same: how many units calls to vendors have used, and when"),
    UserTable("assets", erased=OWN),
    UserTable(
        "share_groups",
        exported=rows("""
            select name, subscription, code, quota, created_at, false as joined from share_groups
            where app_id = $1 and uid = $2
            union all
            select name, '', '', null, joined_at, true from share_members join share_groups using (group_id)
            where share_members.app_id = $1 and share_members.uid = $2"""),
        erased=OWN,
    ),
    UserTable("share_members", erased=OWN),
    UserTable(
        "wallet_orders",
        exported=rows("""
            select order_id, status, bp_product_id, amount, currency, created_at from wallet_orders
            where app_id = $1 and uid = $2 order by row_id"""),
        kept="the purchase history: orders by wallet",
    ),
    UserTable(
        "wallet_subscriptions",
        exported=rows("""
            select subscription_id, status, bp_product_id, plan_id, country, created_at, activated_at, superseded_at
            from wallet_subscriptions where app_id = $1 and uid = $2 order by row_id"""),
        kept="the purchase history: subscriptions by wallet",
    ),
    UserTable("leaderboard_scores", exported=scores, erased=OWN),
    UserTable("leaderboard_rewards", kept="the purchase history: ranks and scores that were rewarded"),
    UserTable(
        "card_payments",
        exported=rows("""
            select payment_id, config, amount, currency, product_id, intent_id, status, created_at, email,
                device_info
            from card_payments left join card_payment_details using (payment_id, app_id, uid)
            where app_id = $1 and uid = $2 order by payment_id"""),
        kept="payments with a card: the amount, the product and when, without the card",
    ),
    UserTable(
        "card_subscriptions",
        exported=rows("""
            select config, product_id, subscription_id, status, period_ends_at, canceled_at, created_at
            from card_subscriptions where app_id = $1 and uid = $2 order by row_id"""),
        restriction=Restriction("a subscription with a card renews: cancel it first", HAS_RENEWING),
        kept="subscriptions with a card: the product, and from when to when",
    ),
    UserTable(
        "operator_refunds",
        exported=rows("""
            select platform, order_id, payment_id, refund_id, amount, currency, state, created_at
            from operator_refunds where app_id = $1 and uid = $2 order by row_id"""),
        kept="the purchase history: refunds that operators have asked for",
    ),
    UserTable("reversal_details", kept="the purchase history: refunds and disputes of payments"),
    UserTable("card_sales", kept="which of these payments were refunded"),
    UserTable("card_payment_details", erased=OWN),
    UserTable("card_customers", erased=OWN),
    UserTable(
        "withdrawals",
        exported=rows("""
            select withdrawal_id, app_withdraw_id, request, platform, amount, currency, receiver, status, reason,
                created_at, paid_at
            from withdrawals where app_id = $1 and uid = $2 order by created_at"""),
        erased=_forget_receivers,
        erased_as="receivers_of_withdrawals",
        restriction=Restriction(
            "a withdrawal is in progress",
            "select exists (select from withdrawals where app_id = $1 and uid = $2 and status = 'START')",
        ),
        kept="amounts, times and outcomes of payments to the user, without the receiver",
    ),
    UserTable("withdrawal_entries", kept="the same amounts, as they were reserved, paid or void"),
    UserTable(
        "mails",
        exported=rows("""
            select mail_id, strategy, status, created_at, sent_at, opens from mails
            where app_id = $1 and uid = $2 order by mail_id"""),
        erased=OWN,
        expires=After("created_at", "mail_days"),
    ),
    UserTable(
        "predictions",
        exported=rows("""
            select prediction_id, strategy, model, body, status, output, error, created_at, ended_at
            from predictions where app_id = $1 and uid = $2 order by prediction_id"""),
        erased=OWN,
        expires=After("created_at", "task_days", only="ended_at is not null"),
    ),
    UserTable(
        "image_tasks",
        exported=rows("""
            select task_id, strategy, type, request, origin_task_id, status, image_key, created_at, ended_at
            from image_tasks where app_id = $1 and uid = $2 order by task_id"""),
        erased=OWN,
        expires=After("created_at", "task_days", only="ended_at is not null"),
    ),
    UserTable("task_files", erased=OWN, expires=retention.task_files),
    UserTable(
        "login_failures",
        # The steps are omitted, because they describe the app's configs, not the user.
        exported=paged(f"""
            select failure_id, operation, platform, social_id, error_type, failed_at from login_failures
            where {_OWN_FAILURES} and failure_id > $3 order by failure_id limit $4"""),
        erased=_OWN_FAILURES,
        expires=After("failed_at", "login_failure_days"),
    ),
    UserTable("conversations", exported=conversations, erased_later=True, expires=retention.conversations),
    UserTable("speech", exported=speech, erased_later=True, expires=retention.speech),
    UserTable(
        "user_exports",
        erased=exports.erase,
        erased_as="exports",
        expires=After(exports.delete_expired, "export_days"),
    ),
    UserTable(
        "reported_events",
        kept="reports of the account, its purchases and its assets that a sink of the app has not accepted yet, "
        "for at most `event_days`",
        expires=retention.reported_events,
    ),
    UserTable(
        "attempts",
        kept="usage and cost of calls to vendors, without content",
        counted=False,
        expires_for_all_apps=retention.attempts,
    ),
    UserTable(
        "audit",
        kept="changes by operators that name the user id, until PARLEY_AUDIT_DAYS",
        counted=False,
        expires_for_all_apps=retention.audit_entries,
    ),
    UserTable("erasures", kept="this receipt"),
    UserTable("revocations", kept="this receipt"),
    UserTable("idempotency_keys", expires_for_all_apps=retention.idempotency_keys),
    UserTable("webhooks", expires=After("received_at", "webhook_days")),
    UserTable("used_once", expires=After("expires_at")),
    UserTable("held_jobs", expires=After(jobs.delete_expired)),
)
"""Expiring data that belongs to no user has entries too. Exports contain the tables in this order. Rows are erased
in the reverse order, because some are found through rows of earlier entries."""
