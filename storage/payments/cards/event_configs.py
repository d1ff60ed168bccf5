"""Which config has made the payment or the subscription of an event of the card platform."""

from storage.postgres.database import Connection

_FIND = """
select config from card_payments where app_id = $1 and intent_id = $2
union all
select config from card_payments where app_id = $1 and payment_id = $3
    and (intent_id is null or $2 = '' or intent_id = $2)
union all
select config from card_sales where app_id = $1 and intent_id = $2
union all
select config from card_subscriptions where app_id = $1 and subscription_id = $4
union all
select config from card_subscriptions where app_id = $1 and row_id = $5
limit 1
"""


async def find(
    conn: Connection,
    app_id: str,
    *,
    intent_id: str = "",
    payment_id: str = "",
    subscription_id: str = "",
    row_id: str = "",
) -> str | None:
    """Return the config of a payment or of a subscription, which have ids of the platform and ids of ours.

    `intent_id` may be the payment of an invoice that is known.
    """
    config: str | None = await conn.fetchval(_FIND, app_id, intent_id, payment_id, subscription_id, row_id)
    return config
