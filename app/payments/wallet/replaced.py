"""The job that cancels a replaced subscription and makes its refunds."""

from datetime import timedelta
from functools import partial

from app.payments.posting import begin_posting
from app.payments.wallet.refunds import PARTLY_REFUNDED, REFUNDED, left_after, make_refund
from app.payments.wallet.subscription_sync import Synced, cancel_subscription
from app.payments.wallet.wallet import PLATFORM, account_of, none_if_gone
from app.services import Services
from storage.events.outbox import PurchaseEvent
from storage.payments.wallet import refunds as wallet_refunds
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.payments.wallet import upgrades as wallet_upgrades
from storage.payments.wallet.refunds import OpenRefund
from storage.payments.wallet.subscriptions import EndReplacedSubscription, WalletSubscription
from storage.payments.wallet.upgrades import State
from streams.wire.money import Money
from vendors.payments.paypal.refunds import Refund

_KEY_KEPT = timedelta(days=29)
"""The platform remembers the keys of refunds of sales for 30 days."""
_EVENTS_KEPT, _EVENTS_AHEAD = timedelta(days=29), timedelta(days=1)
"""The platform lists events for 30 days. Its clock may be ahead."""


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
    row = cancelled.row
    await make_refund(
        services, app_id, refund,
        call=partial(_refund_at_platform, services, app_id, cancelled),
        left=partial(_left_of_payment, services, app_id, row, refund),
        purchase=partial(_purchase, row),
    )  # fmt: skip


async def _refund_at_platform(
    services: Services, app_id: str, cancelled: Synced, refund: OpenRefund
) -> Refund | None:
    """Make a refund at the platform unless it exists, and return it. `None`: its id cannot be known.

    The call is repeated while the platform remembers its key. After that, the refunds that the payment shows count
    as ours.
    """
    account = account_of(services, app_id, cancelled.row.config)
    if refund.refund_id is not None:
        return await account.sale_refund(refund.refund_id)
    states = {payment.id: payment.status for payment in cancelled.read.payments}
    is_forgotten = services.clock.now(app_id) - refund.created_at > _KEY_KEPT
    if is_forgotten and states.get(refund.sale_id) in {REFUNDED, PARTLY_REFUNDED}:
        return None
    return await account.refund_sale(refund.key, refund.sale_id, refund.money)


async def _left_of_payment(services: Services, app_id: str, row: WalletSubscription, refund: OpenRefund) -> Money:
    """Return how much of a payment is not refunded, by what the platform shows and has reported.

    Errors do not tell it: version 1 of PayPal's payments answers `TRANSACTION_REFUSED` for many reasons.
    """
    account, now = account_of(services, app_id, row.config), services.clock.now(app_id)
    sale = await none_if_gone(account.sale(refund.sale_id))
    if sale is None:
        return refund.money
    if sale.state == REFUNDED.lower():
        return Money(0, refund.currency)
    found = await account.refunds_of_sale(sale.id, start=now - _EVENTS_KEPT, end=now + _EVENTS_AHEAD)
    return await left_after(services, app_id, sale.id, sale.amount, listed=found)


def _purchase(row: WalletSubscription, refund: OpenRefund, refund_id: str | None) -> PurchaseEvent:
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
