"""Finds the order or the subscription of a payment, and syncs it with what was read of the payment's reversals."""

from collections.abc import Sequence

from app.payments.wallet import order_sync as wallet_order_sync
from app.payments.wallet import subscription_sync as wallet_subscription_sync
from app.payments.wallet.reversals import disputes_of
from app.payments.wallet.wallet import account_of, none_if_gone
from app.services import Services
from storage.assets import entries as asset_entries
from storage.assets.entries import Channel
from storage.payments.reversals import Reversal
from storage.payments.wallet import orders as wallet_orders
from storage.payments.wallet import subscriptions as wallet_subscriptions


async def sync_dispute(services: Services, app_id: str, config: str, dispute_id: str, *, channel: Channel) -> None:
    """Read a dispute, and sync the payments that it is about. Those of other apps are ignored."""
    dispute = await account_of(services, app_id, config).dispute(dispute_id)
    for reversal in disputes_of(dispute):
        await sync_payment(services, app_id, config, reversal.payment_id, channel=channel, reported=[reversal])


async def sync_payment(
    services: Services,
    app_id: str,
    config: str,
    payment_id: str,
    *,
    channel: Channel,
    reported: Sequence[Reversal] = (),
) -> None:
    """Sync the order of a capture, or the subscription of a sale."""
    order_id, subscription_id = await _owner_of(services, app_id, config, payment_id)
    async with services.database.connection() as conn:
        order = await wallet_orders.find(conn, app_id, order_id=order_id)
        row = await wallet_subscriptions.find(conn, app_id, subscription_id=subscription_id)
    if order is not None:
        await wallet_order_sync.sync_order(services, app_id, order, channel=channel, reported=reported)
    if row is not None:
        await wallet_subscription_sync.sync_subscription(services, app_id, row, channel=channel, reported=reported)


async def _owner_of(services: Services, app_id: str, config: str, payment_id: str) -> tuple[str, str]:
    """Return the ids of the order and of the subscription of a payment. Either or both are empty.

    The ledger knows the payments that have granted something. Others are read from the platform.
    """
    async with services.database.connection() as conn:
        for key in (f"wallet:capture:{payment_id}", f"wallet:sale:{payment_id}"):
            if (granted := await asset_entries.find(conn, app_id, key=key)) is not None:
                is_sale = granted.subscription != ""
                return ("", granted.receipt_id) if is_sale else (granted.receipt_id, "")
    account = account_of(services, app_id, config)
    capture = await none_if_gone(account.capture(payment_id))
    if capture is not None and capture.order_id:
        return capture.order_id, ""
    sale = await none_if_gone(account.sale(payment_id))
    return "", "" if sale is None else sale.billing_agreement_id
