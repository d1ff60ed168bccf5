"""The verdict on a payment or a subscription: whether it has granted its product and, if not, why."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from storage.assets.assets import Asset
from storage.assets.entries import StoredEntry
from storage.jobs.inbox import WebhookState
from storage.payments.mismatches import Mismatch
from storage.payments.order_list import ListedOrder

Verdict = Literal[
    "granted", "used", "ended", "refunded", "not_created", "not_approved", "not_captured", "declined",
    "needs_customer", "processing", "canceled", "no_product", "amount_differs", "webhook_failed",
    "paid_not_granted",
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
    "requires_payment_method": "declined",
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


def verdict_of(
    order: ListedOrder,
    entries: Sequence[StoredEntry],
    *,
    assets: Sequence[Asset],
    mismatches: Sequence[Mismatch],
    webhooks: Sequence[WebhookState],
    now: datetime,
) -> Verdict:
    """Return the verdict on an order. `assets` are all assets of its user."""
    granted = [stored.entry for stored in entries if stored.entry.kind == "grant"]
    if not granted:
        return _not_granted(order, mismatches=mismatches, webhooks=webhooks)
    last = entries[-1].entry.kind
    if last == "refund":
        return "refunded"
    names = {(entry.name, entry.subscription) for entry in granted}
    own = [asset for asset in assets if (asset.name, asset.subscription) in names]
    if any(asset.is_valid(now) for asset in own):
        return "granted"
    return "ended" if any(asset.type == "subscription" for asset in own) else "used"


def _not_granted(
    order: ListedOrder, *, mismatches: Sequence[Mismatch], webhooks: Sequence[WebhookState]
) -> Verdict:
    if order.status not in _PAID:
        failed = any(webhook.status == "failed" for webhook in webhooks)
        return "webhook_failed" if failed else _STATES.get(order.status, "processing")
    if order.product is None:
        return "no_product"
    if any(mismatch.kind == "amount_differs" for mismatch in mismatches):
        return "amount_differs"
    return "webhook_failed" if any(webhook.status == "failed" for webhook in webhooks) else "paid_not_granted"
