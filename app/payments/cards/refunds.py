"""The job that refunds a payment with a card: of a closed account, or of a second subscription to a product."""

import structlog

from app.payments.cards.platform import CardPlatform, card_platform
from app.services import Services
from storage.configs.kinds.cardpay import CARDPAY
from storage.payments import mismatches
from storage.payments.cards import refunds as card_refunds
from storage.payments.cards.refunds import CardRefund, RefundCard
from vendors.errors import Refused
from vendors.payments.stripe.errors import error_in
from vendors.payments.stripe.objects import Refund

log = structlog.get_logger()

ROW_ID = "refund_row_id"
"""The field of a refund's metadata that names our row."""
_REFUNDED = "charge_already_refunded"
_REFUSALS = frozenset({400, 402, 403, 404})


async def refund_card(services: Services, job: RefundCard) -> None:
    """Make a refund. A permanent refusal is reported to operators."""
    async with services.database.connection() as conn:
        refund = await card_refunds.get(conn, job.app_id, row_id=job.row_id)
    if refund.state != "pending":
        return
    platform = card_platform(services, job.app_id, refund.config)
    try:
        made = await _find(platform, refund) or await platform.stripe.refund(
            f"{refund.row_id}:refund", refund.intent_id, metadata={ROW_ID: refund.row_id}
        )
    except Refused as refused:
        problem = error_in(refused).code or f"answered {refused.vendor_status}"
        if refused.vendor_status not in _REFUSALS or refused.retryable:
            raise
        if problem != _REFUNDED:
            await _report_refused(services, refund, problem)
            return
        made = None
    async with services.database.connection() as conn:
        refund_id = None if made is None else made.id
        await card_refunds.set_made(conn, job.app_id, row_id=refund.row_id, refund_id=refund_id)


async def _find(platform: CardPlatform, refund: CardRefund) -> Refund | None:
    """Find the refund that an earlier call has made, if the platform no longer knows the key of that call."""
    if platform.knows_keys_since(refund.created_at):
        return None
    refunds = await platform.stripe.refunds(refund.intent_id)
    return next((made for made in refunds if (made.metadata or {}).get(ROW_ID) == refund.row_id), None)


async def _report_refused(services: Services, refund: CardRefund, problem: str) -> None:
    async with services.database.transaction() as conn:
        if not await card_refunds.set_refused(conn, refund.app_id, row_id=refund.row_id, problem=problem):
            return
        await mismatches.add(
            conn, refund.app_id,
            platform=CARDPAY.name, kind="refund_refused", subject=refund.sale_id,
            detail=f"{refund.money}: {problem}", now=services.clock.now(refund.app_id),
        )  # fmt: skip
    log.error("card.refund_refused", app_id=refund.app_id, sale_id=refund.sale_id, problem=problem)
