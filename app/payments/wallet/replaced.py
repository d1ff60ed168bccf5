"""The job that cancels a replaced subscription and makes its refunds."""

from app.payments.posting import begin_posting
from app.payments.wallet.refunds import KEY_KEPT, PARTLY_REFUNDED, REFUNDED, make_refund
from app.payments.wallet.subscription_sync import Synced, cancel_subscription
from app.payments.wallet.wallet import PLATFORM, account_of, is_final
from app.services import Services
from storage.events.outbox import PurchaseEvent
from storage.payments.wallet import refunds as wallet_refunds
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.payments.wallet import upgrades as wallet_upgrades
from storage.payments.wallet.refunds import OpenRefund
from storage.payments.wallet.subscriptions import EndReplacedSubscription, WalletSubscription
from storage.payments.wallet.upgrades import State
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.refunds import Refund


async def end_replaced(services: Services, job: EndReplacedSubscription) -> None:
    """Cancel a replaced subscription at the platform, and then make its refunds.

    Each step has its own idempotency key, and is repeated until the platform has answered. Refunds that the
    platform has only accepted are read back by further jobs, which the reconciliation stores until each refund is
    made or has failed.
    """
    async with services.database.connection() as conn:
        row = await wallet_subscriptions.get(conn, job.app_id, row_id=job.row_id)
    if row.superseded_at is None:
        return
    cancelled = await cancel_subscription(services, job.app_id, row, reason="Replaced by another subscription")
    await _advance_upgrade(services, job.app_id, row, after="new_active", to="old_cancelled")
    if not await _make_refunds(services, job.app_id, cancelled):
        return
    await _advance_upgrade(services, job.app_id, row, after="old_cancelled", to="refunded")
    await _advance_upgrade(services, job.app_id, row, after="refunded", to="done")


async def _make_refunds(services: Services, app_id: str, cancelled: Synced) -> bool:
    """Make the refunds of a subscription. Return whether all results are known."""
    row_id = cancelled.row.row_id
    async with services.database.connection() as conn:
        refunds = await wallet_refunds.open_refunds(conn, app_id, paid_row=row_id)
    for refund in refunds:
        await _make_refund(services, app_id, cancelled, refund)
    async with services.database.connection() as conn:
        return not await wallet_refunds.open_refunds(conn, app_id, paid_row=row_id)


async def _make_refund(services: Services, app_id: str, cancelled: Synced, refund: OpenRefund) -> None:
    await make_refund(
        services, app_id, refund,
        call=lambda: _refund_at_platform(services, app_id, cancelled, refund),
        purchase=lambda refund_id: _purchase(cancelled.row, refund, refund_id=refund_id),
    )  # fmt: skip


async def _refund_at_platform(
    services: Services, app_id: str, cancelled: Synced, refund: OpenRefund
) -> Refund | None:
    """Make a refund at the platform unless it exists, and return it. `None`: its id cannot be known.

    The call is repeated while the platform remembers its key. After that, or if there is nothing left to refund,
    the refunds that the payment shows count as ours.
    """
    account = account_of(services, app_id, cancelled.row.config)
    if refund.refund_id is not None:
        return await account.sale_refund(refund.refund_id)
    states = {payment.id: payment.status for payment in cancelled.read.payments}
    state, is_forgotten = states.get(refund.sale_id), services.clock.now(app_id) - refund.created_at > KEY_KEPT
    if is_forgotten and state in {REFUNDED, PARTLY_REFUNDED}:
        return None
    try:
        return await account.refund_sale(f"{refund.row_id}:refund", refund.sale_id, refund.money)
    except PayPalRefused as error:
        if is_final(error) and state == REFUNDED:
            return None
        raise


def _purchase(row: WalletSubscription, refund: OpenRefund, *, refund_id: str | None) -> PurchaseEvent:
    return PurchaseEvent(
        user_id=row.uid,
        kind="refund",
        platform=PLATFORM,
        config=row.config,
        transaction_id=refund.sale_id,
        refund_id=refund_id,
        subscription_id=row.platform_id,
        product_id=row.bp_product_id,
        amount=refund.amount,
        currency=refund.currency,
    )


async def _advance_upgrade(
    services: Services, app_id: str, row: WalletSubscription, *, after: State, to: State
) -> None:
    """Move the upgrade that has replaced a subscription to its next state."""
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel="server")
        for upgrade in await wallet_upgrades.of_old(conn, app_id, old_row=row.row_id):
            if upgrade.state == after:
                await wallet_upgrades.set_state(conn, app_id, upgrade=upgrade, to=to, now=posting.now)
