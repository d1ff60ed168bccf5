"""Webhooks of the payout platform (§6.4). Each names a withdrawal, which is read back."""

from functools import partial
from typing import Any

import structlog

from app.http.rows.webhooks import WebhookSource
from app.platforms import paypal
from app.platforms.missed_events import EventList
from app.services import Services
from app.withdrawals.payouts import pay_out
from storage.configs.kinds.payouts import PAYOUTS
from storage.configs.rows import ConfigKey
from storage.jobs.inbox import Webhook
from storage.withdrawals import withdrawals
from storage.withdrawals.withdrawals import PayOut
from vendors.payments.paypal.events import WebhookEvent

log = structlog.get_logger()


async def _work(services: Services, webhook: Webhook) -> None:
    """Read back the withdrawal that a stored webhook names. Unknown ones are ignored."""
    state = webhook.state
    payout_id, ids = _ids_of(webhook.body)
    async with services.database.connection() as conn:
        found = await withdrawals.find_by_payouts(conn, state.app_id, config=state.config, ids=ids)
    for withdrawal in found:
        job = PayOut(app_id=state.app_id, withdrawal_id=withdrawal.withdrawal_id)
        await pay_out(services, job, reported_id=payout_id)


async def _config_of(services: Services, key: ConfigKey, body: bytes) -> str | None:
    """Return the config that has made the payout of an event. `None`: the app has not made it."""
    async with services.database.connection() as conn:
        return await withdrawals.config_of(conn, key.app_id, ids=_ids_of(body)[1])


def _ids_of(body: bytes) -> tuple[str, list[str]]:
    """Return the platform's id of the payout in an event, which may be empty, and all ids of it that there are."""
    payout_id, ours = _ids(WebhookEvent.read(body).resource)
    return payout_id, [id_ for id_ in (payout_id, ours) if id_]


def _ids(resource: Any) -> tuple[str, str]:
    """Return the platform's id of the payout and our id of the withdrawal in an event. Empty: it has none."""
    match resource:
        case {"payout_batch_id": str(payout_id), **more}:
            return payout_id, _text(more.get("payout_item"), "sender_item_id")
        case {"batch_header": {"payout_batch_id": str(payout_id), **more}}:
            return payout_id, _text(more.get("sender_batch_header"), "sender_batch_id")
    return "", ""


def _text(fields: Any, name: str) -> str:
    text = fields.get(name) if isinstance(fields, dict) else None
    return text if isinstance(text, str) else ""


PAYOUT_WEBHOOKS = WebhookSource(
    "payouts",
    "Receive an event of the payout platform.",
    partial(paypal.verify_delivery, kind=PAYOUTS),
    _work,
)
PAYOUT_EVENTS = EventList(PAYOUTS, ("PAYMENT.PAYOUTS",), paypal.event_pages, _config_of)
