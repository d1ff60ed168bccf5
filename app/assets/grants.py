"""The grant of a purchased product."""

from datetime import datetime

from storage.assets.entries import AssetOrigin, Channel, Entry
from storage.configs.kinds.products import Product
from streams.wire.period import Period


def grant_of(
    product: Product,
    bp_product_id: str,
    *,
    key: str,
    receipt_id: str,
    origin: AssetOrigin,
    channel: Channel,
    start: datetime,
    subscription: str = "",
    platform: str = "",
    product_id: str = "",
    renews: bool = False,
) -> Entry:
    """Return the grant of a payment. `subscription` is the platform's id of a subscription.

    `start` is when the paid period begins. A trial has a period of its own.
    """
    in_trial = origin == "trial" and product.trial is not None
    ends_at = None
    if product.period is not None:
        period = product.trial.period if in_trial and product.trial is not None else product.period
        ends_at = Period.parse(period).after(start)
    return Entry(
        key=key,
        kind="grant",
        name=product.asset,
        type=product.type,
        subscription=subscription if product.type == "subscription" else "",
        quantity=product.quantity,
        starts_at=None if ends_at is None else start,
        ends_at=ends_at,
        platform=platform,
        product_id=product_id,
        bp_product_id=bp_product_id,
        receipt_id=receipt_id,
        origin=origin,
        channel=channel,
        is_trial=in_trial,
        renews=renews,
    )
