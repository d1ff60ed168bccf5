"""Webhooks of the payout platform (§6.4). Each is a hint: the withdrawal that it names is read back."""

from functools import partial
from typing import Any

import structlog

from app import paypal
from app.http.webhooks import WebhookSource
from app.missed_events import EventList
from app.services import Services
from app.withdrawals.payouts import pay_out
from storage import withdrawals
from storage.inbox import Webhook
from storage.kinds.payouts import PAYOUTS
from storage.withdrawals import PayOut
from vendors.payments.paypal_events import WebhookEvent

log = structlog.get_logger()


async def _work(services: Services, webhook: Webhook) -> None:
    """Read back the withdrawal that a stored webhook names. Others are ignored."""
    state = webhook.state
    ids = _ids(WebhookEvent.read(webhook.body).resource)
    async with services.database.connection() as conn:
        found = await withdrawals.find_by_payouts(conn, state.app_id, config=state.config, ids=ids)
    for withdrawal in found:
        await pay_out(services, PayOut(app_id=state.app_id, withdrawal_id=withdrawal.withdrawal_id))


def _ids(resource: Any) -> list[str]:
    """Return the ids in the object of an event: the platform's of the payout, and ours of the withdrawal."""
    match resource:
        case {"payout_batch_id": str(payout_id)}:
            return [payout_id]
        case {"batch_header": {"payout_batch_id": str(payout_id), **header}}:
            ours = header.get("sender_batch_header")
            withdrawal_id = ours.get("sender_batch_id") if isinstance(ours, dict) else None
            return [payout_id, withdrawal_id] if isinstance(withdrawal_id, str) else [payout_id]
    return []


PAYOUT_WEBHOOKS = WebhookSource(
    "payouts", "Receive an event of the payout platform (webhook).", partial(paypal.verify, kind=PAYOUTS), _work
)
PAYOUT_EVENTS = EventList(PAYOUTS, ("PAYMENT.PAYOUTS",), paypal.event_pages)
