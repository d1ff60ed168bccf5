"""The records of the platforms and of the database at the end of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientSession

from bench.kills.testbed import MERCHANT
from storage.postgres.database import Connection

Row = Mapping[str, Any]
_KEY = {"Authorization": "Bearer sandbox"}
_PAGE = 100
_TABLES = {
    "entries": "select uid, key, kind, channel, reverses from asset_entries",
    "card_payments": "select payment_id, uid, intent_id, status from card_payments",
    "card_sales": "select sale_id, intent_id, reversed_by from card_sales",
    "card_subscriptions": "select row_id, uid, subscription_id, status from card_subscriptions",
    "orders": "select row_id, uid, order_id, status from wallet_orders",
    "subscriptions": "select row_id, uid, subscription_id, status, superseded_at from wallet_subscriptions",
    "upgrades": "select upgrade_id, old_row, new_row, state from wallet_upgrades",
    "wallet_refunds": "select sale_id, amount, state from wallet_refunds",
    "payment_reversals": "select payment_id from payment_reversals",
    "withdrawals": "select withdrawal_id, uid, status, payout_id from withdrawals",
    "withdrawal_entries": "select withdrawal_id, kind from withdrawal_entries order by entry_id",
    "members": "select code, member.uid, quota from share_members member join share_groups using (group_id)",
    "webhooks": "select source, status from webhooks",
    "jobs": "select task_name, status::text from procrastinate_jobs",
    "mismatches": "select kind, subject from payment_mismatches",
}


@dataclass(frozen=True, slots=True)
class Books:
    """`rows`: the rows of each of `_TABLES`. The others are the objects of the platforms."""

    rows: Mapping[str, Sequence[Row]]
    intents: Sequence[Row]
    invoices: Sequence[Row]
    card_subscriptions: Sequence[Row]
    payments: Sequence[Row]
    refunds: Sequence[Row]
    disputes: Sequence[Row]
    payouts: Sequence[Row]
    subscriptions: Sequence[Row]


async def read_books(http: ClientSession, sandbox_url: str, conn: Connection) -> Books:
    query = {"client_id": MERCHANT}
    async with http.get(f"{sandbox_url}/paypal/_control/books", params=query, raise_for_status=True) as response:
        wallet = await response.json()
    return Books(
        rows={name: [dict(row) for row in await conn.fetch(query)] for name, query in _TABLES.items()},
        intents=await _listed(http, sandbox_url, "payment_intents"),
        invoices=await _listed(http, sandbox_url, "invoices"),
        card_subscriptions=await _listed(http, sandbox_url, "subscriptions", status="all"),
        **wallet,
    )


async def _listed(http: ClientSession, sandbox_url: str, path: str, **query: str) -> list[Row]:
    """Return all objects of a list of the card platform."""
    found: list[Row] = []
    while True:
        after = {"starting_after": found[-1]["id"]} if found else {}
        params = {"limit": str(_PAGE), **query, **after}
        url = f"{sandbox_url}/stripe/v1/{path}"
        async with http.get(url, params=params, headers=_KEY, raise_for_status=True) as response:
            page = await response.json()
        found += page["data"]
        if not page["has_more"]:
            return found
