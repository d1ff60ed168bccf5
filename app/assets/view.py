"""JSON representation of assets (§2.7)."""

import math
from datetime import datetime

from storage.assets.assets import Asset
from storage.configs.kinds.products import AssetType
from streams.wire.codec import ZERO_TIME, rfc3339
from streams.wire.model import Model


class AssetView(Model):
    """Something that a user owns. Times that are not set are the zero time, `0001-01-01T00:00:00Z`."""

    name: str
    type: AssetType
    valid_seconds: int
    """Seconds until a subscription ends; 0 for other types."""
    quantity: int
    """Units that are left, of consumables and of subscriptions that grant units for each period."""
    total_quantity: int
    """Units that the current period of a subscription has granted."""
    is_auto_renewable: bool
    is_trial_period: bool
    is_consumable: bool
    expire_time: str
    """When a subscription ends, unless an operator has set another time; the zero time for other types."""
    custom_expire_time: str
    """The end that an operator has set; the zero time if there is none."""
    platform: str
    """`cardpay` or `walletpay`, for subscriptions that were bought."""
    product_id: str
    """The platform's id of the product."""
    bp_product_id: str
    """The id of the product on this server."""
    receipt_id: str
    """The payment, order or subscription that granted it last."""
    origin: str
    """`purchase`, `renewal`, `upgrade`, `trial`, `share`, `reward`, `admin` or `restore`."""
    sub_canceled: bool
    sub_canceled_time: str
    """The zero time if it is not canceled."""
    sub_canceled_ts: int
    """Unix seconds; 0 if it is not canceled."""
    is_refund: bool
    refund_time: str
    """When the platform made the refund; the zero time if there was none."""
    last_recovery_time: str = ZERO_TIME
    """The zero time: assets do not recover."""
    recoverable: bool = False


def asset_views(owned: list[Asset], *, now: datetime) -> list[AssetView]:
    """Return the assets of a user for a response. A nonconsumable whose purchases were refunded is left out."""
    return [_view(asset, now=now) for asset in owned if asset.type != "nonconsumable" or asset.units]


def _view(asset: Asset, *, now: datetime) -> AssetView:
    subscription = asset.type == "subscription"
    left_s = (asset.ends_at - now).total_seconds() if asset.ends_at is not None else 0.0
    valid = asset.is_valid(now)
    return AssetView(
        name=asset.name,
        type=asset.type,
        valid_seconds=max(0, math.floor(left_s)),
        quantity=asset.units if asset.type == "consumable" or (subscription and valid) else 0,
        total_quantity=asset.total_quantity,
        is_auto_renewable=asset.renews,
        is_trial_period=asset.is_trial and valid,
        is_consumable=asset.type == "consumable" or asset.total_quantity > 0,
        expire_time=rfc3339(asset.ended_at or asset.grace_ends_at or asset.paid_ends_at),
        custom_expire_time=rfc3339(asset.custom_ends_at),
        platform=asset.platform if subscription else "",
        product_id=asset.product_id if subscription else "",
        bp_product_id=asset.bp_product_id,
        receipt_id=asset.receipt_id,
        origin=asset.origin,
        sub_canceled=asset.canceled_at is not None,
        sub_canceled_time=rfc3339(asset.canceled_at),
        sub_canceled_ts=0 if asset.canceled_at is None else int(asset.canceled_at.timestamp()),
        is_refund=asset.refunded_at is not None,
        refund_time=rfc3339(asset.refunded_at),
    )
