"""The job that cancels a replaced subscription and makes its refunds."""

from datetime import timedelta

import structlog

from app.payments.posting import begin_posting
from app.payments.wallet.subscription_sync import Synced, cancel_subscription
from app.payments.wallet.wallet import PLATFORM, account_of, is_final, none_if_gone
from app.services import Services
from storage.events.outbox import PurchaseEvent
from storage.payments import mismatches
from storage.payments.mismatches import MismatchKind
from storage.payments.wallet import refunds as wallet_refunds
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.payments.wallet import upgrades as wallet_upgrades
from storage.payments.wallet.refunds import OpenRefund
from storage.payments.wallet.subscriptions import EndReplacedSubscription, WalletSubscription
from storage.payments.wallet.upgrades import State
from streams.wire.money import Money
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.refunds import Refund

log = structlog.get_logger()

_KEY_KEPT = timedelta(days=29)
"""The platform remembers the keys of refunds of sales for 30 days."""
_EVENTS_KEPT, _EVENTS_AHEAD = timedelta(days=29), timedelta(days=1)
"""The platform lists events for 30 days. Its clock may be ahead."""
_COMPLETED = "COMPLETED"
_FAILED = frozenset({"FAILED", "CANCELLED"})
_REFUNDED = "REFUNDED"
_PARTLY_REFUNDED = "PARTIALLY_REFUNDED"


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
        refunds = await wallet_refunds.open_refunds(conn, app_id, subscription_row=row_id)
    for refund in refunds:
        await _make_refund(services, app_id, cancelled, refund)
    async with services.database.connection() as conn:
        return not await wallet_refunds.open_refunds(conn, app_id, subscription_row=row_id)


async def _make_refund(services: Services, app_id: str, cancelled: Synced, refund: OpenRefund) -> None:
    """Make a refund, or read back an accepted one.

    If it exceeds what is left of the payment, because a part was refunded by hand, what is left is refunded. What
    the platform refuses for good is reported to operators.
    """
    made: Refund | None = None
    try:
        made = await _refund_at_platform(services, app_id, cancelled, refund)
    except PayPalRefused as error:
        is_accepted = refund.refund_id is not None
        if not (error.not_found if is_accepted else is_final(error)):
            raise
        left = refund.money if is_accepted else await _left_of_payment(services, app_id, cancelled.row, refund)
        if left >= refund.money:
            kind: MismatchKind = "refund_failed" if is_accepted else "refund_refused"
            await _set_failed(services, app_id, refund, error.issue, kind=kind)
            return
        if left.amount:
            reduced = await _reduce(services, app_id, refund, to=left, problem=error.issue)
            if reduced is not None:
                await _make_refund(services, app_id, cancelled, reduced)
            return
    if made is not None and made.status in _FAILED:
        await _set_failed(services, app_id, refund, made.status, kind="refund_failed")
        return
    async with services.database.transaction() as conn:
        if made is not None and made.status != _COMPLETED:
            await wallet_refunds.set_accepted(conn, app_id, row_id=refund.row_id, refund_id=made.id)
            return
        refund_id = None if made is None else made.id
        if await wallet_refunds.set_done(conn, app_id, row_id=refund.row_id, refund_id=refund_id):
            purchase = _purchase(cancelled.row, refund, refund_id=refund_id)
            await services.sinks.report(conn, app_id, purchase, now=services.clock.now(app_id))


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
    if is_forgotten and states.get(refund.sale_id) in {_REFUNDED, _PARTLY_REFUNDED}:
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
    nothing = Money(0, refund.currency)
    if sale.state == _REFUNDED.lower():
        return nothing
    found = await account.refunds_of_sale(sale.id, start=now - _EVENTS_KEPT, end=now + _EVENTS_AHEAD)
    async with services.database.connection() as conn:
        refunds = await wallet_refunds.reported(conn, app_id, sale_id=sale.id, currency=refund.currency)
    refunds |= {made.id: made.amount for made in found if made.amount is not None and made.status == _COMPLETED}
    # Amounts of refunds are negative in some of PayPal's objects.
    refunded = Money(sum(abs(amount.amount) for amount in refunds.values()), refund.currency)
    return max(sale.amount - refunded, nothing)


async def _reduce(
    services: Services, app_id: str, refund: OpenRefund, *, to: Money, problem: str
) -> OpenRefund | None:
    """Store a smaller amount, which has another key, and report the difference to operators."""
    difference = refund.money - to
    async with services.database.transaction() as conn:
        reduced = await wallet_refunds.reduce(conn, app_id, refund=refund, to=to)
        if reduced is None:
            return None
        await mismatches.add(
            conn, app_id,
            platform=PLATFORM, kind="refund_refused", subject=refund.sale_id,
            detail=f"{difference} of {refund.money}: {problem}", now=services.clock.now(app_id),
        )  # fmt: skip
    log.error(
        "wallet.refund_failed", app_id=app_id, sale_id=refund.sale_id, amount=str(difference), problem=problem
    )
    return reduced


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


async def _set_failed(
    services: Services, app_id: str, refund: OpenRefund, problem: str, *, kind: MismatchKind
) -> None:
    async with services.database.transaction() as conn:
        if not await wallet_refunds.set_failed(conn, app_id, row_id=refund.row_id, problem=problem):
            return
        await mismatches.add(
            conn, app_id,
            platform=PLATFORM, kind=kind, subject=refund.sale_id, detail=f"{refund.money}: {problem}",
            now=services.clock.now(app_id),
        )  # fmt: skip
    log.error(
        "wallet.refund_failed", app_id=app_id, sale_id=refund.sale_id, amount=str(refund.money), problem=problem
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
