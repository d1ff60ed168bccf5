"""Creates orders at the wallet platform, reads them back, and grants what they have paid for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.assets.grants import grant_of
from app.payments.posting import Posting, begin_posting
from app.payments.reversals import Payment, apply_reversals
from app.payments.wallet.refunds import refund_order_later, refunded_of
from app.payments.wallet.reversals import DAY, READ_FOR, reversal_of
from app.payments.wallet.wallet import PLATFORM, account_of, is_final, none_if_gone, soon, wallet_config
from app.services import Services
from storage.assets.entries import Channel, Entry
from storage.configs.kinds.products import PRODUCTS, Product
from storage.events.outbox import PurchaseEvent, PurchaseKind
from storage.payments import mismatches
from storage.payments import reversals as stored_reversals
from storage.payments.reversals import Reversal
from storage.payments.wallet import orders as wallet_orders
from storage.payments.wallet import refunds as wallet_refunds
from storage.payments.wallet.orders import VOIDED, WalletOrder
from streams.wire.errors import ConfigInvalid
from streams.wire.money import Money
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.orders import Capture, Order
from vendors.payments.paypal.refunds import Refund

COMPLETED = "COMPLETED"
APPROVED = "APPROVED"
PAID = frozenset({"COMPLETED", "PARTIALLY_REFUNDED", "REFUNDED"})
"""The states of captures that were paid."""
_REFUNDED = "REFUNDED"
_CHARGED_BACK = "CHARGEBACK"
_KEY_KEPT = timedelta(hours=6)
"""How long the platform remembers the key with which an order is created."""


async def create_at_platform(services: Services, app_id: str, order: WalletOrder) -> Order:
    """Create a stored order at the platform, or return the one that an earlier call has created.

    If the platform refuses permanently, the row is deleted.
    """
    brand_name = wallet_config(services, app_id, order.config).brand_name
    try:
        return await account_of(services, app_id, order.config).create_order(
            f"{order.row_id}:create",
            amount=order.price,
            custom_id=order.uid,
            description=_description(services, app_id, order),
            return_url=order.return_url,
            cancel_url=order.cancel_url,
            brand_name=brand_name,
        )
    except PayPalRefused as error:
        if is_final(error):
            async with services.database.transaction() as conn:
                await wallet_orders.remove(conn, app_id, row_id=order.row_id)
        raise


def _description(services: Services, app_id: str, order: WalletOrder) -> str:
    """Return the label of the product for the payer, or its id if its config can no longer be used."""
    try:
        return services.configs.required(PRODUCTS, app_id, order.bp_product_id).value.label
    except ConfigInvalid:
        return order.bp_product_id[:127]


async def read_order(services: Services, app_id: str, order: WalletOrder) -> Order | None:
    """Read an order back from the platform. `None`: it has expired there."""
    return await none_if_gone(account_of(services, app_id, order.config).order(order.platform_id))


async def sync_order(
    services: Services, app_id: str, order: WalletOrder, *, channel: Channel, reported: Sequence[Reversal] = ()
) -> tuple[WalletOrder, Order | None]:
    """Read an order back and apply it. Return its row, and the order of the platform.

    `reported` are reversals of its capture that were read apart from it.
    """
    platform_order = await read_order(services, app_id, order)
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, order.uid, channel=channel)
        return await apply_order(posting, order, platform_order, reported=reported), platform_order


async def complete_creation(services: Services, app_id: str, order: WalletOrder) -> None:
    """Repeat the creation of an order, because the result of the first call is unknown.

    The order is voided if the platform no longer remembers the key of that call.
    """
    now = services.clock.now(app_id)
    is_known = now - order.created_at < _KEY_KEPT
    platform_order = await create_at_platform(services, app_id, order) if is_known else None
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, order.uid, channel="reconciliation")
        await apply_order(posting, order, platform_order)


async def apply_order(
    posting: Posting,
    order: WalletOrder,
    read: Order | None,
    *,
    declined: int = 0,
    reported: Sequence[Reversal] = (),
) -> WalletOrder:
    """Post the entries that follow from an order of the platform, and store its state.

    `declined` is the number of its declined captures.
    """
    conn, app_id = posting.conn, posting.app_id
    order = await wallet_orders.lock(conn, app_id, row_id=order.row_id)
    for capture in read.captures if read is not None else []:
        listed = await _listed(posting, capture, read.refunds if read else [])
        await _post_capture(posting, order, capture, [*listed, *reported])
    status = status_of(order, read)
    applied = replace(
        order,
        order_id=order.order_id or (None if read is None else read.id),
        status=status,
        declined=max(order.declined, declined),
    )
    applied = replace(applied, check_at=await _check_at(posting, applied))
    await wallet_orders.update(conn, app_id, order=applied)
    return applied


async def _listed(posting: Posting, capture: Capture, refunds: Sequence[Refund]) -> list[Reversal]:
    """Return the refunds of a capture that its order lists.

    The list does not say which of them are chargebacks. If the capture says that it was charged back, and no
    chargeback is known, this is the only refund that is not known either.
    """
    read = [reversal_of(refund, capture.id) for refund in refunds if refund.capture_id in {"", capture.id}]
    listed = [reversal for reversal in read if reversal is not None]
    if capture.status_details.reason != _CHARGED_BACK:
        return listed
    stored = await stored_reversals.of_payments(
        posting.conn, posting.app_id, platform=PLATFORM, payment_ids=[capture.id]
    )
    known = {reversal.reversal_id for reversal in stored}
    unknown = [reversal for reversal in listed if reversal.reversal_id not in known]
    if len(unknown) != 1 or any(reversal.kind != "refund" for reversal in stored):
        return listed
    return [replace(each, kind="reversal") if each in unknown else each for each in listed]


async def _check_at(posting: Posting, order: WalletOrder) -> datetime | None:
    """Return when to read an order back: once a day while its payment may be reversed, if no change is expected."""
    if order.status == VOIDED:
        return None
    if order.status != COMPLETED:
        return soon(posting.now)
    if await wallet_refunds.is_refunding(posting.conn, posting.app_id, paid_row=order.row_id):
        await refund_order_later(posting.conn, posting.app_id, row_id=order.row_id)
        return soon(posting.now)
    return posting.now + DAY if posting.now < order.created_at + READ_FOR else None


def status_of(order: WalletOrder, read: Order | None) -> str:
    """Return the state of an order: that of the platform, except that `COMPLETED` means that it was paid.

    A completed order stays completed, even if older data was read.
    """
    if order.status == COMPLETED:
        return COMPLETED
    if read is None:
        return VOIDED
    if read.status != COMPLETED:
        return read.status
    states = {capture.status for capture in read.captures}
    if states & PAID:
        return COMPLETED
    return VOIDED if states and states <= {"DECLINED", "FAILED"} else APPROVED


async def _post_capture(
    posting: Posting, order: WalletOrder, capture: Capture, reported: Sequence[Reversal]
) -> None:
    """Post the grant of a paid capture, and what its refunds and disputes take back or restore.

    A capture of another amount than was ordered grants nothing. It is left to operators, who refund it.
    """
    if capture.status not in PAID:
        return
    paid = capture.amount or order.price
    granted = _grant(posting, order, capture) if paid == order.price else None
    if granted is None:
        is_new = await _report_mismatch(posting, order, capture, paid)
    else:
        is_new = await posting.post(granted)
    if is_new:
        await posting.report(_purchase(order, capture, "charge", paid))
    payment = Payment(
        PLATFORM, capture.id, paid, reported,
        is_refunded=capture.status == _REFUNDED, refunded_at=capture.update_time,
        order_id=order.order_id or "",
    )  # fmt: skip
    change = await apply_reversals(posting, payment, granted, name=capture.id)
    if change is not None:
        await posting.report(_purchase(order, capture, change.kind, change.money))
    if is_new and posting.is_deactivated:
        await _refund(posting, order, capture, paid)


async def _report_mismatch(posting: Posting, order: WalletOrder, capture: Capture, paid: Money) -> bool:
    """Record that another amount was captured than was ordered. Return whether it is new."""
    return await mismatches.add_once(
        posting.conn, posting.app_id,
        platform=PLATFORM, kind="amount_differs", subject=capture.id,
        detail=f"{paid} were paid instead of {order.price} for the order {order.order_id}",
        now=posting.now,
    )  # fmt: skip


async def _refund(posting: Posting, order: WalletOrder, capture: Capture, paid: Money) -> None:
    """Store the refund of a payment that has arrived after the account of its user was closed."""
    refunded = await refunded_of(posting.conn, posting.app_id, capture.id, paid)
    if capture.status != _REFUNDED and refunded < paid:
        await wallet_refunds.add(
            posting.conn, posting.app_id,
            sale_id=capture.id, order_row=order.row_id, amount=paid - refunded, now=posting.now,
        )  # fmt: skip


def _purchase(order: WalletOrder, capture: Capture, kind: PurchaseKind, money: Money) -> PurchaseEvent:
    return PurchaseEvent(
        user_id=order.uid,
        kind=kind,
        platform=PLATFORM,
        config=order.config,
        transaction_id=capture.id,
        product_id=order.bp_product_id,
        amount=money.amount,
        currency=money.currency,
    )


def _grant(posting: Posting, order: WalletOrder, capture: Capture) -> Entry:
    product = product_of(order.product)
    return grant_of(
        product,
        order.bp_product_id,
        key=f"wallet:capture:{capture.id}",
        receipt_id=order.order_id or "",
        origin="purchase",
        channel=posting.channel,
        start=posting.now,
        platform=PLATFORM,
        product_id=product.walletpay.product_id if product.walletpay is not None else "",
    )


def product_of(stored: Mapping[str, object]) -> Product:
    """Return a product as it was stored with an order."""
    return Product.model_validate(stored)
