"""Makes stored refunds at the wallet platform, each exactly once, and reports those that fail."""

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from datetime import timedelta

import structlog

from app.payments.posting import report_purchase
from app.payments.reversals import lost_of
from app.payments.wallet.reversals import reversal_of
from app.payments.wallet.wallet import PLATFORM, account_of, is_final, none_if_gone
from app.services import Services
from storage.events.outbox import PurchaseEvent
from storage.jobs.jobs import enqueue
from storage.payments import mismatches, operator_refunds
from storage.payments import reversals as stored_reversals
from storage.payments.mismatches import MismatchKind
from storage.payments.reversals import Reversal, ReversalState
from storage.payments.wallet import orders as wallet_orders
from storage.payments.wallet import refunds as wallet_refunds
from storage.payments.wallet.orders import WalletOrder
from storage.payments.wallet.refunds import OpenRefund, RefundOrder
from storage.postgres.database import Connection
from streams.wire.money import Money
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.refunds import Refund

log = structlog.get_logger()

_KEY_KEPT = timedelta(days=44)
"""The platform remembers the keys of refunds of captures for 45 days."""
REFUNDED = "REFUNDED"
PARTLY_REFUNDED = "PARTIALLY_REFUNDED"
_COMPLETED = "COMPLETED"
_FAILED = frozenset({"FAILED", "CANCELLED"})


async def make_refund(
    services: Services,
    app_id: str,
    refund: OpenRefund,
    *,
    call: Callable[[OpenRefund], Awaitable[Refund | None]],
    left: Callable[[], Awaitable[Money]],
    purchase: Callable[[OpenRefund, str | None], PurchaseEvent] | None = None,
) -> None:
    """Make a refund by `call`, which also reads back an accepted one.

    If it exceeds what is left of the payment (`left`), because a part was refunded by hand or is disputed, what is
    left is refunded. What the platform refuses for good is reported to operators. `call` returns `None` if the
    refund was made, and its id cannot be known. `purchase` returns the event of the refund with an id, which is
    reported once it is made. Without it, reading back the payment reports it.
    """
    due: OpenRefund | None = refund
    if refund.refund_id is None and await _may_lose(services, app_id, refund.sale_id):
        remaining = await left()
        if remaining < refund.money:
            due = await _reduce(services, app_id, refund, to=remaining, problem="DISPUTED")
    if due is not None:
        await _make(services, app_id, due, call=call, left=left, purchase=purchase)


async def _make(
    services: Services,
    app_id: str,
    refund: OpenRefund,
    *,
    call: Callable[[OpenRefund], Awaitable[Refund | None]],
    left: Callable[[], Awaitable[Money]],
    purchase: Callable[[OpenRefund, str | None], PurchaseEvent] | None,
) -> None:
    made: Refund | None = None
    try:
        made = await call(refund)
    except PayPalRefused as error:
        is_accepted = refund.refund_id is not None
        if not (error.not_found if is_accepted else is_final(error)):
            raise
        remaining = refund.money if is_accepted else await left()
        if remaining >= refund.money:
            kind: MismatchKind = "refund_failed" if is_accepted else "refund_refused"
            await _set_failed(services, app_id, refund, error.issue, kind=kind)
            return
        reduced = await _reduce(services, app_id, refund, to=remaining, problem=error.issue)
        if reduced is not None:
            await _make(services, app_id, reduced, call=call, left=left, purchase=purchase)
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
            event = purchase(refund, refund_id)
            await report_purchase(services, conn, app_id, event, now=services.clock.now(app_id))


async def _reduce(
    services: Services, app_id: str, refund: OpenRefund, *, to: Money, problem: str
) -> OpenRefund | None:
    """Store a smaller amount, which has another key, and report the difference to operators.

    Return `None` if there is nothing to refund: the payer gets all of the payment without us.
    """
    difference = refund.money - to
    async with services.database.transaction() as conn:
        if not to.amount:
            await wallet_refunds.set_done(conn, app_id, row_id=refund.row_id, refund_id=None)
            return None
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


async def _may_lose(services: Services, app_id: str, payment_id: str) -> bool:
    """Return whether a dispute has taken a payment, or may take it, or a part of it."""
    async with services.database.connection() as conn:
        return await _has_dispute(conn, app_id, payment_id, states={"open", "taken"})


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


async def left_after(
    services: Services, app_id: str, payment_id: str, paid: Money, *, listed: Iterable[Refund]
) -> Money:
    """Return how much of a payment is left, by the refunds that the platform lists, and what it has reported."""
    async with services.database.connection() as conn:
        stored = await _reversals_of(conn, app_id, payment_id)
    found = {reversal.reversal_id: reversal for reversal in stored}
    for read in (reversal_of(refund, payment_id) for refund in listed):
        if read is not None and read.amount is not None:
            known = found.get(read.reversal_id)
            found[read.reversal_id] = read if known is None else replace(read, kind=known.kind)
    return paid - Money(lost_of(paid, list(found.values())).gone, paid.currency)


async def refunded_of(conn: Connection, app_id: str, payment_id: str, paid: Money) -> Money:
    """Return how much of a payment is or will be refunded, by us, by operators, or as the platform reports.

    What is disputed counts: the payer may get it from the platform.
    """
    stored = await _reversals_of(conn, app_id, payment_id)
    unreported = await wallet_refunds.unreported(conn, app_id, sale_id=payment_id, currency=paid.currency)
    of_operators = await operator_refunds.unreported(
        conn, app_id, platform=PLATFORM, payment_id=payment_id, currency=paid.currency
    )
    return Money(lost_of(paid, stored).gone, paid.currency) + unreported + of_operators


async def is_disputed(conn: Connection, app_id: str, payment_id: str) -> bool:
    """Return whether a dispute of a payment is undecided."""
    return await _has_dispute(conn, app_id, payment_id, states={"open"})


async def _has_dispute(
    conn: Connection, app_id: str, payment_id: str, *, states: Collection[ReversalState]
) -> bool:
    stored = await _reversals_of(conn, app_id, payment_id)
    return any(reversal.kind == "dispute" and reversal.state in states for reversal in stored)


async def _reversals_of(conn: Connection, app_id: str, payment_id: str) -> list[Reversal]:
    return await stored_reversals.of_payments(conn, app_id, platform=PLATFORM, payment_ids=[payment_id])


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

    async def call(refund: OpenRefund) -> Refund | None:
        if refund.refund_id is not None:
            return await account.capture_refund(refund.refund_id)
        if services.clock.now(app_id) - refund.created_at > _KEY_KEPT:
            capture = await account.capture(refund.sale_id)
            if capture.status in {REFUNDED, PARTLY_REFUNDED}:
                return None
        return await account.refund_capture(refund.key, refund.sale_id, refund.money)

    async def left() -> Money:
        """Return how much of the capture is not refunded. The order lists its refunds, a capture does not."""
        read = await none_if_gone(account.order(order.platform_id))
        captures = [] if read is None else [found for found in read.captures if found.id == refund.sale_id]
        if read is None or not captures or captures[0].amount is None:
            return refund.money
        if captures[0].status == REFUNDED:
            return Money(0, refund.currency)
        listed = [made for made in read.refunds if made.capture_id in {"", refund.sale_id}]
        return await left_after(services, app_id, refund.sale_id, captures[0].amount, listed=listed)

    await make_refund(services, app_id, refund, call=call, left=left)
