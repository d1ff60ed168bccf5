"""Makes stored refunds at the wallet platform, each exactly once, and reports those that fail."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog

from app.payments.wallet.wallet import PLATFORM, account_of, is_final
from app.services import Services
from storage.events.outbox import PurchaseEvent
from storage.jobs.jobs import enqueue
from storage.payments import mismatches
from storage.payments.mismatches import MismatchKind
from storage.payments.wallet import orders as wallet_orders
from storage.payments.wallet import refunds as wallet_refunds
from storage.payments.wallet.orders import WalletOrder
from storage.payments.wallet.refunds import OpenRefund, RefundOrder
from storage.postgres.database import Connection
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.refunds import Refund

log = structlog.get_logger()

KEY_KEPT = timedelta(days=44)
"""The platform remembers the keys of refunds for 45 days."""
REFUNDED = "REFUNDED"
PARTLY_REFUNDED = "PARTIALLY_REFUNDED"
_COMPLETED = "COMPLETED"
_FAILED = frozenset({"FAILED", "CANCELLED"})


async def make_refund(
    services: Services,
    app_id: str,
    refund: OpenRefund,
    *,
    call: Callable[[], Awaitable[Refund | None]],
    purchase: Callable[[str | None], PurchaseEvent] | None = None,
) -> None:
    """Make a refund by `call`, which also reads back an accepted one. A permanent failure is reported to operators.

    `call` returns `None` if the refund was made, and its id cannot be known. `purchase` returns the event of the
    refund with an id, which is reported once it is made. Without it, reading back the payment reports it.
    """
    try:
        made = await call()
    except PayPalRefused as error:
        is_accepted = refund.refund_id is not None
        if not (error.not_found if is_accepted else is_final(error)):
            raise
        kind: MismatchKind = "refund_failed" if is_accepted else "refund_refused"
        await _set_failed(services, app_id, refund, error.issue, kind=kind)
        return
    if made is not None and made.status in _FAILED:
        await _set_failed(services, app_id, refund, made.status, kind="refund_failed")
        return
    async with services.database.transaction() as conn:
        if made is not None and made.status != _COMPLETED:
            await wallet_refunds.set_accepted(conn, app_id, row_id=refund.row_id, refund_id=made.id)
            return
        refund_id = None if made is None else made.id
        is_new = await wallet_refunds.set_done(conn, app_id, row_id=refund.row_id, refund_id=refund_id)
        if is_new and purchase is not None:
            await services.sinks.report(conn, app_id, purchase(refund_id), now=services.clock.now(app_id))


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


async def refund_order_later(conn: Connection, app_id: str, *, row_id: str) -> None:
    """Store the job that makes the refunds of an order. `conn` is in a transaction."""
    job = RefundOrder(app_id=app_id, row_id=row_id)
    await enqueue(conn, job, key=f"{job.task}:{row_id}")


async def refund_order(services: Services, job: RefundOrder) -> None:
    """Make the refunds of an order. The reconciliation repeats the job until each is made or has failed."""
    async with services.database.connection() as conn:
        order = await wallet_orders.get(conn, job.app_id, row_id=job.row_id)
        refunds = await wallet_refunds.open_refunds(conn, job.app_id, paid_row=job.row_id)
    for refund in refunds:
        await _refund_capture(services, job.app_id, order, refund)


async def _refund_capture(services: Services, app_id: str, order: WalletOrder, refund: OpenRefund) -> None:
    account = account_of(services, app_id, order.config)

    async def call() -> Refund | None:
        if refund.refund_id is not None:
            return await account.capture_refund(refund.refund_id)
        if services.clock.now(app_id) - refund.created_at > KEY_KEPT:
            capture = await account.capture(refund.sale_id)
            if capture.status in {REFUNDED, PARTLY_REFUNDED}:
                return None
        return await account.refund_capture(f"{refund.row_id}:refund", refund.sale_id, refund.money)

    await make_refund(services, app_id, refund, call=call)
