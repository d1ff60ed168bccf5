"""What a user has subscribed to, by wallet and by card together."""

from storage.configs.kinds.products import Product
from storage.postgres.database import Connection

_HAS_LIVE = """
select exists (
    select from wallet_subscriptions
    where app_id = $1 and uid = $2 and status in ('APPROVED', 'ACTIVE') and superseded_at is null and row_id <> $5
        and case when plan_changes = '[]' then bp_product_id = $3
            else plan_changes -> -1 ->> 'plan_id' = any($4::text[]) end)
or exists (
    select from card_subscriptions
    where app_id = $1 and uid = $2 and product_id = $3 and superseded_at is null and row_id <> $5
        and (canceled_at is null or cancel_at > period_ends_at)
        and (status in ('trialing', 'active', 'past_due', 'unpaid')
            or (status = 'new' and customer_id is not null)))
"""
_HAD_TRIAL = """
select exists (
    select from asset_entries
    where app_id = $1 and uid = $2 and name = $3 and kind = 'grant' and is_trial and subscription <> $4)
or exists (
    select from card_subscriptions
    where app_id = $1 and uid = $2 and product ->> 'asset' = $3 and trial_ends_at is not null
        and status not in ('refused', 'abandoned'))
"""


async def has_live(
    conn: Connection, app_id: str, uid: str, *, bp_product_id: str, product: Product, besides: str = ""
) -> bool:
    """Return whether a user has a subscription to a product that renews, or that is approved and about to begin.

    One with a card that is cancelled to a date after its period counts, because it is billed until then. One that
    the wallet platform has suspended does not count, nor one that is ended because the user has another one.
    One whose plan was changed counts for the product of its plan. `besides` is the row of one that does not count.
    `conn` is in a transaction that has locked the user.
    """
    wallet = product.walletpay
    plans = [] if wallet is None else [plan for plan in (wallet.plan_id, *wallet.plans.values()) if plan]
    found: bool = await conn.fetchval(_HAS_LIVE, app_id, uid, bp_product_id, plans, besides)
    return found


async def had_trial(conn: Connection, app_id: str, uid: str, *, asset: str, besides: str = "") -> bool:
    """Return whether a user has, or has had, a trial of an asset.

    A trial with a card counts from the request for it. `besides` is the platform's id of a subscription that does
    not count. `conn` is in a transaction that has locked the user.
    """
    found: bool = await conn.fetchval(_HAD_TRIAL, app_id, uid, asset, besides)
    return found
