"""The verdict on a payment or a subscription: whether it has granted its product and, if not, why."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from storage.assets.assets import Asset
from storage.assets.entries import StoredEntry
from storage.payments.mismatches import Mismatch
from storage.payments.order_list import ListedOrder, OrderWebhook

Verdict = Literal[
    "granted", "used", "ended", "refunded", "not_created", "not_approved", "not_captured", "not_paid",
    "declined", "needs_customer", "processing", "under_review", "canceled", "no_product", "amount_differs",
    "webhook_failed", "config_unusable", "paid_not_granted",
]  # fmt: skip

_PAID = frozenset({"COMPLETED", "succeeded", "ACTIVE", "active", "trialing", "past_due"})
_STATES: dict[str, Verdict] = {
    "NEW": "not_created",
    "new": "not_created",
    "CREATED": "not_approved",
    "PAYER_ACTION_REQUIRED": "not_approved",
    "APPROVAL_PENDING": "not_approved",
    "APPROVED": "not_captured",
    "SAVED": "not_captured",
    "VOIDED": "canceled",
    "CANCELLED": "canceled",
    "EXPIRED": "canceled",
    "SUSPENDED": "declined",
    "requires_payment_method": "not_paid",
    "incomplete": "needs_customer",
    "unpaid": "declined",
    "refused": "declined",
    "requires_action": "needs_customer",
    "requires_confirmation": "needs_customer",
    "requires_capture": "processing",
    "processing": "processing",
    "canceled": "canceled",
    "abandoned": "canceled",
    "incomplete_expired": "canceled",
}
"""The verdicts that follow from a status at a platform, if nothing was granted."""
_EVENTS: dict[str, Verdict] = {
    "PAYMENT.CAPTURE.PENDING": "under_review",
    "PAYMENT.CAPTURE.DECLINED": "declined",
    "PAYMENT.CAPTURE.DENIED": "declined",
    "payment_intent.payment_failed": "declined",
}
"""What events tell that a status does not, while the payment is open."""
_OPEN = frozenset({"not_created", "not_approved", "not_captured", "not_paid", "processing"})


def verdict_of(
    order: ListedOrder,
    entries: Sequence[StoredEntry],
    *,
    assets: Sequence[Asset],
    mismatches: Sequence[Mismatch],
    webhooks: Sequence[OrderWebhook],
    config_usable: bool,
    now: datetime,
) -> Verdict:
    """Return the verdict on an order.

    `assets` are all assets of its user. `config_usable`: whether its platform can be asked about it.
    """
    granted = [stored.entry for stored in entries if stored.entry.kind == "grant"]
    if not granted:
        return _not_granted(order, mismatches=mismatches, webhooks=webhooks, config_usable=config_usable)
    last = entries[-1].entry.kind
    if last == "refund":
        return "refunded"
    names = {(entry.name, entry.subscription) for entry in granted}
    own = [asset for asset in assets if (asset.name, asset.subscription) in names]
    if any(asset.is_valid(now) for asset in own):
        return "granted"
    return "ended" if any(asset.type == "subscription" for asset in own) else "used"


def _not_granted(
    order: ListedOrder, *, mismatches: Sequence[Mismatch], webhooks: Sequence[OrderWebhook], config_usable: bool
) -> Verdict:
    failed = any(webhook.state.status == "failed" for webhook in webhooks)
    if order.status not in _PAID:
        return "webhook_failed" if failed else _open(order, webhooks, config_usable=config_usable)
    if order.product is None:
        return "no_product"
    if any(mismatch.kind == "amount_differs" for mismatch in mismatches):
        return "amount_differs"
    return "webhook_failed" if failed else "paid_not_granted"


def _open(order: ListedOrder, webhooks: Sequence[OrderWebhook], *, config_usable: bool) -> Verdict:
    """Return the verdict on an order that is not paid."""
    verdict = _STATES.get(order.status, "processing")
    if verdict not in _OPEN:
        return verdict
    reported = [_EVENTS[webhook.event_type] for webhook in webhooks if webhook.event_type in _EVENTS]
    if reported or order.declined:
        return reported[-1] if reported else "declined"
    return verdict if config_usable else "config_unusable"
