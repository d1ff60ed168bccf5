"""Payments and subscriptions of all platforms for operators: in one list, or one with its traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from storage.assets.entries import COLUMNS, Entry, StoredEntry
from storage.jobs.inbox import STATE_COLUMNS, WebhookState
from storage.payments.mismatches import COLUMNS as MISMATCH_COLUMNS
from storage.payments.mismatches import Mismatch
from storage.postgres.database import Connection
from storage.postgres.directions import directed
from streams.wire.codec import loads

What = Literal["orders", "subscriptions"]


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """A payment for one product, or a subscription."""

    row_id: str
    app_id: str
    uid: str
    platform: str
    config: str
    platform_id: str | None
    """The platform's id, once it is known."""
    status: str
    product: str | None
    amount: int | None
    """In minor units. `None`: a subscription, whose platform knows its price."""
    currency: str | None
    created_at: datetime
    ends_at: datetime | None
    """The end of the last period of a subscription, as far as its row says."""
    declined: int
    """How many captures by the wallet platform were declined."""


_TABLES: Mapping[What, Mapping[str, str]] = {
    "orders": {
        "wallet_orders": """
            select row_id, app_id, uid, 'walletpay' as platform, config, order_id as platform_id, status,
                bp_product_id as product, amount, currency, created_at, null::timestamptz as ends_at, declined
            from wallet_orders where {where}""",
        "card_payments": """
            select payment_id as row_id, app_id, uid, 'cardpay' as platform, config, intent_id as platform_id,
                status, product_id as product, amount, currency, created_at, null::timestamptz as ends_at,
                0 as declined
            from card_payments where {where}""",
    },
    "subscriptions": {
        "wallet_subscriptions": """
            select row_id, app_id, uid, 'walletpay' as platform, config, subscription_id as platform_id, status,
                bp_product_id as product, null::bigint as amount, null as currency, created_at,
                null::timestamptz as ends_at, 0 as declined
            from wallet_subscriptions where {where}""",
        "card_subscriptions": """
            select row_id, app_id, uid, 'cardpay' as platform, config, subscription_id as platform_id, status,
                product_id as product, null::bigint as amount, null as currency, created_at,
                period_ends_at as ends_at, 0 as declined
            from card_subscriptions where {where}""",
    },
}
_KEYS = {"card_payments": "payment_id"}
_PLATFORM_IDS = {"wallet_orders": "order_id", "card_payments": "intent_id"}
# The platforms write statuses in upper or in lower case. They are compared as they are stored, so that the indexes
# of orders that are open or not completed are used.
_WHERE = """
($1::text is null or app_id = $1) and ($2::text[] is null or status = any($2))
and ($3::text is null or {key} {{compare}} $3) order by {key} {{order}} limit $4
"""


async def page(
    conn: Connection,
    what: What,
    *,
    of_app: str | None,
    platform: str | None,
    status: str | None,
    oldest_first: bool,
    before: str | None,
    size: int,
) -> list[ListedOrder]:
    """Return payments or subscriptions in the order of their creation, the newest first unless `oldest_first`.

    `status` may be written in upper or in lower case.
    """
    statuses = None if status is None else [status.upper(), status.lower()]
    parts = []
    for table, statement in _TABLES[what].items():
        if platform is None or table.startswith(platform.removesuffix("pay")):
            where = _WHERE.format(key=_KEYS.get(table, "row_id"))
            parts.append(f"({statement.format(where=where)})")
    merged = f"select * from ({' union all '.join(parts)}) found order by row_id {{order}} limit $4"
    statement = directed(merged, oldest_first=oldest_first)
    return [ListedOrder(**row) for row in await conn.fetch(statement, of_app, statuses, before, size)]


async def find(conn: Connection, app_id: str, uid: str, *, order: str) -> ListedOrder | None:
    """Return a payment or a subscription of a user by our id or by that of its platform."""
    parts = []
    for statements in _TABLES.values():
        for table, statement in statements.items():
            key, platform_id = _KEYS.get(table, "row_id"), _PLATFORM_IDS.get(table, "subscription_id")
            where = f"app_id = $1 and uid = $2 and ({key} = $3 or {platform_id} = $3)"
            parts.append(f"({statement.format(where=where)})")
    row = await conn.fetchrow(" union all ".join(parts), app_id, uid, order)
    return None if row is None else ListedOrder(**row)


_ENTRIES = f"""
select entry_id, entered_at, {COLUMNS} from asset_entries
where app_id = $1 and uid = $2 and (receipt_id = $3 or subscription = $3) order by entry_id
"""


async def entries(conn: Connection, order: ListedOrder) -> list[StoredEntry]:
    """Return the entries of the ledger that a payment or a subscription has caused, the oldest first."""
    rows = await conn.fetch(_ENTRIES, order.app_id, order.uid, order.platform_id)
    return [StoredEntry(entry_id, entered_at, Entry(*values)) for entry_id, entered_at, *values in rows]


_MISMATCHES = f"""
select {MISMATCH_COLUMNS} from payment_mismatches
where app_id = $1 and (subject = any($2) or position($3 in detail) > 0) order by mismatch_id
"""


async def mismatches(conn: Connection, order: ListedOrder, *, subjects: Sequence[str]) -> list[Mismatch]:
    """Return the mismatches of the subjects, and those whose detail names the payment or subscription."""
    found = await conn.fetch(_MISMATCHES, order.app_id, subjects, order.platform_id)
    return [Mismatch(**row) for row in found]


_SEARCHED = 5000
_WITHIN = timedelta(days=3)
# Bodies have no index, so only a limited number of webhooks in the days after the payment is searched.
_WEBHOOKS = f"""
select {STATE_COLUMNS}, body from (
    select * from webhooks where app_id = $1 and received_at between $2 and $3 order by received_at limit $4
) near where source = $5 and position(convert_to($6, 'UTF8') in body) > 0 order by received_at limit 50
"""


@dataclass(frozen=True, slots=True)
class OrderWebhook:
    """A webhook that names a payment or a subscription."""

    state: WebhookState
    event_type: str
    """As the platform names it, such as `PAYMENT.CAPTURE.PENDING`. Empty if the body has none."""


async def webhooks(conn: Connection, order: ListedOrder) -> list[OrderWebhook]:
    """Return the webhooks that name a payment or a subscription, the oldest first."""
    if order.platform_id is None:
        return []
    since, until = order.created_at - timedelta(minutes=5), order.created_at + _WITHIN
    named: list[Any] = [order.app_id, since, until, _SEARCHED, order.platform, order.platform_id]
    return [
        OrderWebhook(WebhookState(*state), _event_type(body))
        for *state, body in await conn.fetch(_WEBHOOKS, *named)
    ]


def _event_type(body: bytes) -> str:
    try:
        event = loads(body)
    except ValueError:
        return ""
    named = event.get("event_type") or event.get("type") if isinstance(event, dict) else None
    return named if isinstance(named, str) else ""
