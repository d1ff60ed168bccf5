"""Which config has made the order or the subscription of an event of the wallet platform."""

from collections.abc import Sequence

from storage.postgres.database import Connection

_FIND = """
with named as (
    select unnest($2::text[]) as id
    union all
    select receipt_id from asset_entries where app_id = $1 and key = any($3)
)
select config from named join wallet_orders on app_id = $1 and order_id = named.id
union all
select config from named join wallet_subscriptions on app_id = $1 and subscription_id = named.id
limit 1
"""


async def find(conn: Connection, app_id: str, *, ids: Sequence[str]) -> str | None:
    """Return the config of the order or subscription with one of these ids, or with a payment that has one of them.

    The payments are those that have granted something. All ids are the platform's.
    """
    keys = [f"wallet:{kind}:{id_}" for kind in ("capture", "sale") for id_ in ids]
    config: str | None = await conn.fetchval(_FIND, app_id, ids, keys)
    return config
