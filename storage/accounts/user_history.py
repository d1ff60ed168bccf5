"""The history of a user for operators: entries from all tables, the newest first."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from storage.accounts.identities import SECRET_IDS
from storage.accounts.login_failures import failures_of_user
from storage.postgres.database import Connection

_NO_SECRET = f"case when platform = any(array{list(SECRET_IDS)}) then left(social_id, 4) || '…' else social_id end"

# Each query has the columns at, id and facts. The parameters are the app and the user.
_PARTS: Mapping[str, str] = {
    "account": """
        select create_time as at, 'created' as id, '{}'::jsonb as facts from users where app_id = $1 and uid = $2
        union all
        select freeze_time, 'frozen', jsonb_build_object('close_time', close_time) from users
        where app_id = $1 and uid = $2 and freeze_time is not null
        union all
        select deactivated_at, 'deactivated', jsonb_build_object('cause', cause) from erasures
        where app_id = $1 and uid = $2""",
    "session": """
        select create_time as at, left(digest, 32) as id, jsonb_build_object('platform', platform,
            'client_os', client_os, 'user_agent', left(user_agent, 200), 'address', address,
            'last_seen', last_seen, 'revoke_time', revoke_time, 'expire_time', expire_time) as facts
        from sessions where app_id = $1 and uid = $2""",
    "identity": f"""
        select create_time as at, platform as id, jsonb_build_object('platform', platform,
            'social_id', {_NO_SECRET}, 'trust', trust, 'verified_at', verified_at,
            'weakly_proven', weakly_proven) as facts
        from identities where app_id = $1 and uid = $2
        union all
        select replaced_at, address, jsonb_build_object('platform', 'email', 'social_id', address, 'replaced', true)
        from earlier_emails where app_id = $1 and uid = $2
        union all
        select created_at, address, jsonb_build_object('platform', 'email', 'social_id', address, 'pending', true)
        from pending_emails where app_id = $1 and uid = $2""",
    "login_failure": f"""
        select failed_at as at, failure_id as id, jsonb_build_object('operation', operation, 'platform', platform,
            'error_type', error_type, 'request_id', request_id) as facts
        from login_failures where failure_id in ({failures_of_user("$1", "$2")})""",
    "mail": """
        select created_at as at, mail_id as id, jsonb_build_object('strategy', strategy, 'status', status,
            'sent_at', sent_at, 'opens', opens) as facts
        from mails where app_id = $1 and uid = $2""",
    "asset": """
        select entered_at as at, entry_id::text as id, jsonb_build_object('entry', kind, 'name', name, 'type', type,
            'quantity', quantity, 'subscription', subscription, 'ends_at', ends_at, 'bp_product_id', bp_product_id,
            'receipt_id', receipt_id, 'origin', origin, 'channel', channel, 'key', key) as facts
        from asset_entries where app_id = $1 and uid = $2""",
    "order": """
        select created_at as at, row_id as id, jsonb_build_object('platform', 'walletpay', 'order_id', order_id,
            'status', status, 'amount', amount, 'currency', currency, 'bp_product_id', bp_product_id) as facts
        from wallet_orders where app_id = $1 and uid = $2
        union all
        select created_at, payment_id, jsonb_build_object('platform', 'cardpay', 'order_id', intent_id,
            'status', status, 'amount', amount, 'currency', currency, 'bp_product_id', product_id)
        from card_payments where app_id = $1 and uid = $2""",
    "subscription": """
        select created_at as at, row_id as id, jsonb_build_object('platform', 'walletpay',
            'subscription_id', subscription_id, 'status', status, 'bp_product_id', bp_product_id,
            'activated_at', activated_at, 'superseded_at', superseded_at) as facts
        from wallet_subscriptions where app_id = $1 and uid = $2
        union all
        select created_at, row_id, jsonb_build_object('platform', 'cardpay', 'subscription_id', subscription_id,
            'status', status, 'bp_product_id', product_id, 'period_ends_at', period_ends_at,
            'canceled_at', canceled_at)
        from card_subscriptions where app_id = $1 and uid = $2""",
    "withdrawal": """
        select created_at as at, withdrawal_id as id, jsonb_build_object('platform', platform,
            'withdraw_id', app_withdraw_id, 'status', status, 'amount', amount, 'currency', currency,
            'reason', reason, 'paid_at', paid_at, 'unknown_at', unknown_at, 'payout_id', payout_id) as facts
        from withdrawals where app_id = $1 and uid = $2""",
    "board": """
        select posted_at as at, 'score:' || period_id as id, jsonb_build_object('board', board, 'score', score,
            'period', starts_at) as facts
        from leaderboard_scores s join leaderboard_periods using (period_id) where s.app_id = $1 and uid = $2
        union all
        select coalesce(granted_at, closed_at, starts_at), 'reward:' || period_id, jsonb_build_object(
            'board', board, 'rank', rank, 'score', score, 'bp_product_id', product, 'granted_at', granted_at,
            'period', starts_at)
        from leaderboard_rewards r join leaderboard_periods using (period_id) where r.app_id = $1 and uid = $2""",
    "conversation": """
        select updated_at as at, conversation_id as id, jsonb_build_object('records', record_count,
            'created_at', created_at) as facts
        from conversations where app_id = $1 and uid = $2""",
    "task": """
        select created_at as at, prediction_id as id, jsonb_build_object('task', 'prediction', 'strategy', strategy,
            'status', status, 'error', error, 'ended_at', ended_at, 'host_id', host_id) as facts
        from predictions where app_id = $1 and uid = $2
        union all
        select created_at, task_id, jsonb_build_object('task', 'image', 'strategy', strategy, 'status', status,
            'type', type, 'ended_at', ended_at, 'host_id', host_task_id)
        from image_tasks where app_id = $1 and uid = $2""",
    "operator": """
        select changed_at as at, audit_id::text as id, jsonb_build_object('actor', actor, 'action', action,
            'reason', reason, 'after', after) as facts
        from audit where app_id = $1 and kind = 'user' and name = $2""",
}
KINDS = tuple(_PARTS)
"""The kinds of entries."""


@dataclass(frozen=True, slots=True)
class Happened:
    """An entry in the history of a user."""

    at: datetime
    kind: str
    id: str
    """The id of its subject, unique within its kind."""
    facts: Mapping[str, Any]
    """Further details, which depend on the kind."""


_END = (datetime(9999, 1, 1, tzinfo=UTC), "", "")
_PAGE = """
select at, kind, id, facts from ({parts}) happened order by at desc, kind desc, id desc limit $6
"""
_PART = """
(select at, '{kind}' as kind, id, facts from ({part}) as {kind}_part
where at <= $3 and (at, '{kind}', id) < ($3, $4::text, $5::text) order by at desc, id desc limit $6)
"""


async def page(
    conn: Connection,
    app_id: str,
    uid: str,
    *,
    kinds: Collection[str],
    before: tuple[datetime, str, str] | None,
    size: int,
) -> list[Happened]:
    """Return the history of a user, the newest first. `kinds` are some of `KINDS`; empty: all."""
    wanted = [kind for kind in KINDS if kind in kinds or not kinds]
    parts = " union all ".join(_PART.format(kind=kind, part=_PARTS[kind]) for kind in wanted)
    rows = await conn.fetch(_PAGE.format(parts=parts), app_id, uid, *(before or _END), size)
    return await _with_grants(conn, app_id, uid, found=[Happened(**row) for row in rows])


_BOUGHT = {"order": "order_id", "subscription": "subscription_id"}
_GRANTED = """
select receipt_id as id from asset_entries
where app_id = $1 and uid = $2 and kind = 'grant' and receipt_id = any($3)
union select subscription from asset_entries
where app_id = $1 and uid = $2 and kind = 'grant' and subscription = any($3)
"""


async def _with_grants(conn: Connection, app_id: str, uid: str, *, found: list[Happened]) -> list[Happened]:
    """Add to payments and subscriptions whether they have granted anything."""
    bought = {happened.facts[_BOUGHT[happened.kind]] for happened in found if happened.kind in _BOUGHT}
    if not bought:
        return found
    granted = {row["id"] for row in await conn.fetch(_GRANTED, app_id, uid, [name for name in bought if name])}
    return [
        replace(happened, facts={**happened.facts, "granted": happened.facts[_BOUGHT[happened.kind]] in granted})
        if happened.kind in _BOUGHT
        else happened
        for happened in found
    ]
