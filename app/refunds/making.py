"""Makes a stored refund of an operator at its platform, once, and applies what it takes back."""

from datetime import timedelta

import structlog

from app.payments.cards.platform import CardPlatform, card_platform
from app.payments.cards.refunds import ROW_ID
from app.payments.cards.reversals import sync_reversals
from app.payments.wallet.payment_sync import sync_payment
from app.payments.wallet.refunds import PARTLY_REFUNDED, REFUNDED
from app.payments.wallet.reversals import reversal_of
from app.payments.wallet.wallet import account_of, is_final
from app.services import Services
from storage.configs.kinds.cardpay import CARDPAY
from storage.payments import mismatches, operator_refunds
from storage.payments.operator_refunds import MakeRefund, OperatorRefund
from streams.wire.errors import InvalidParameter
from vendors.errors import Refused
from vendors.payments.paypal.client import PayPal
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.refunds import Refund as WalletRefund
from vendors.payments.stripe.errors import CardDeclined, error_in
from vendors.payments.stripe.objects import Refund as CardRefund
from vendors.payments.stripe.objects import platform_amount

log = structlog.get_logger()

_WALLET_KEY_KEPT = timedelta(days=29)
"""The platform remembers the keys of refunds of sales for 30 days, those of captures longer."""
_CARD_REFUSALS = frozenset({400, 402, 403, 404})
_FAILED = frozenset({"failed", "canceled", "cancelled"})
_MADE = frozenset({"succeeded", "completed"})


async def make_refund(services: Services, refund: OperatorRefund) -> OperatorRefund:
    """Make a refund, or read back one that the platform has accepted, and apply it. Return its new state.

    A refund that the platform refuses for good has failed. Other failures raise `VendorError`: it is not known then
    whether the refund was made, and the next call finds that out.
    """
    if refund.state in {"pending", "accepted"}:
        await (_make_card if refund.platform == CARDPAY.name else _make_wallet)(services, refund)
    async with services.database.connection() as conn:
        return await operator_refunds.get(conn, refund.app_id, row_id=refund.row_id)


async def finish_refund(services: Services, job: MakeRefund) -> None:
    """Make a refund whose request ended before the result was known. If it fails, this is reported to operators."""
    async with services.database.connection() as conn:
        refund = await operator_refunds.get(conn, job.app_id, row_id=job.row_id)
    made = await make_refund(services, refund)
    async with services.database.transaction() as conn:
        if made.state == "accepted":
            await operator_refunds.read_back_later(conn, job.app_id, row_id=job.row_id)
        if made.state == "failed" and refund.state != "failed":
            await mismatches.add(
                conn, job.app_id,
                platform=made.platform, kind="refund_refused" if made.refund_id is None else "refund_failed",
                subject=made.payment_id, detail=f"{made.money}: {made.problem}",
                now=services.clock.now(job.app_id),
            )  # fmt: skip


async def _make_card(services: Services, refund: OperatorRefund) -> None:
    platform = card_platform(services, refund.app_id, refund.config)
    try:
        made = await _find(platform, refund) or await platform.stripe.refund(
            refund.key,
            refund.payment_id,
            amount=platform_amount(refund.money),
            metadata={ROW_ID: refund.row_id},
        )
    except (CardDeclined, InvalidParameter) as refused:
        await _set_failed(services, refund, refused.what)
        return
    except Refused as refused:
        if refused.vendor_status not in _CARD_REFUSALS or refused.retryable:
            raise
        await _set_failed(services, refund, error_in(refused).code or f"answered {refused.vendor_status}")
        return
    status = made.status or ""
    if await _take(services, refund, refund_id=made.id, status=status):
        await sync_reversals(platform, refund.payment_id, channel="operator")
        await _set_applied(services, refund, status=status)


async def _find(platform: CardPlatform, refund: OperatorRefund) -> CardRefund | None:
    """Find the refund at the platform, if it has accepted it, or if it no longer knows the key of the call."""
    if refund.refund_id is None and platform.knows_keys_since(refund.created_at):
        return None
    listed = await platform.stripe.refunds(refund.payment_id)
    return next((made for made in listed if (made.metadata or {}).get(ROW_ID) == refund.row_id), None)


async def _make_wallet(services: Services, refund: OperatorRefund) -> None:
    account, is_order = account_of(services, refund.app_id, refund.config), refund.sale_id is None
    try:
        made = await _refund_by_wallet(services, account, refund, is_order=is_order)
    except PayPalRefused as refused:
        if not is_final(refused):
            raise
        await _set_failed(services, refund, refused.issue or f"answered {refused.vendor_status}")
        return
    if made is None:  # It was made, and its id cannot be known.
        await _set_applied(services, refund, status="completed")
        return
    status = made.status.lower()
    if await _take(services, refund, refund_id=made.id, status=status):
        reported = reversal_of(made, refund.payment_id)
        await sync_payment(
            services, refund.app_id, refund.config, refund.payment_id,
            channel="operator", reported=[] if reported is None else [reported],
        )  # fmt: skip
        await _set_applied(services, refund, status=status)


async def _refund_by_wallet(
    services: Services, account: PayPal, refund: OperatorRefund, *, is_order: bool
) -> WalletRefund | None:
    """Make a refund unless the platform has it, and read it by its id: the first answer may lack its amount.

    `None`: the platform has forgotten the key, and the payment shows a refund, which then counts as this one.
    """
    refund_id, paid = refund.refund_id, refund.payment_id
    if refund_id is None:
        if services.clock.now(refund.app_id) - refund.created_at > _WALLET_KEY_KEPT:
            status = (await account.capture(paid)).status if is_order else (await account.sale(paid)).state.upper()
            if status in {REFUNDED, PARTLY_REFUNDED}:
                return None
        make = account.refund_capture if is_order else account.refund_sale
        refund_id = (await make(refund.key, paid, refund.money)).id
        async with services.database.connection() as conn:
            await operator_refunds.set_accepted(conn, refund.app_id, row_id=refund.row_id, refund_id=refund_id)
    return await (account.capture_refund(refund_id) if is_order else account.sale_refund(refund_id))


async def _take(services: Services, refund: OperatorRefund, *, refund_id: str, status: str) -> bool:
    """Store the platform's id of a refund. Return `False` if the refund has failed."""
    async with services.database.connection() as conn:
        await operator_refunds.set_accepted(conn, refund.app_id, row_id=refund.row_id, refund_id=refund_id)
    if status in _FAILED:
        await _set_failed(services, refund, status)
    return status not in _FAILED


async def _set_applied(services: Services, refund: OperatorRefund, *, status: str) -> None:
    if status in _MADE:
        async with services.database.connection() as conn:
            await operator_refunds.set_made(conn, refund.app_id, row_id=refund.row_id)


async def _set_failed(services: Services, refund: OperatorRefund, problem: str) -> None:
    async with services.database.connection() as conn:
        is_new = await operator_refunds.set_failed(conn, refund.app_id, row_id=refund.row_id, problem=problem[:200])
    if is_new:
        log.error(
            "operator_refund.failed", app_id=refund.app_id, payment_id=refund.payment_id,
            amount=str(refund.money), problem=problem[:200],
        )  # fmt: skip
