"""Refunds, reversals and disputes of wallet payments, as they are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from storage.payments.reversals import Reversal, ReversalState, version_at
from vendors.payments.paypal.disputes import Dispute, DisputeState
from vendors.payments.paypal.refunds import Refund

DAY = timedelta(days=1)
READ_FOR = timedelta(days=180)
"""How long payments are read back, in case a reversal was not reported. Payers may dispute them so long."""
_UNDONE = frozenset({"FAILED", "CANCELLED"})
_STATES: Mapping[DisputeState, ReversalState] = {
    "open": "open", "lost": "taken", "won": "undone", "closed": "closed",
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def reversal_of(refund: Refund, payment_id: str, *, is_reversal: bool = False) -> Reversal | None:
    """Return a refund or a reversal of a payment. `None`: it is not made yet."""
    if refund.status != "COMPLETED" and refund.status not in _UNDONE:
        return None
    at, is_undone = refund.create_time or refund.update_time or _EPOCH, refund.status in _UNDONE
    return Reversal(
        payment_id,
        refund.id,
        "reversal" if is_reversal else "refund",
        None if refund.amount is None else abs(refund.amount.amount),
        None if refund.amount is None else refund.amount.currency,
        "undone" if is_undone else "taken",
        at,
        version_at(refund.update_time or at, is_later=is_undone),
        status=refund.status,
    )


def disputes_of(dispute: Dispute) -> Sequence[Reversal]:
    """Return a dispute for each payment that it is about."""
    opened_at = dispute.create_time or dispute.update_time or _EPOCH
    version = version_at(dispute.update_time or opened_at, is_later=dispute.state != "open")
    whole = Reversal(
        "", dispute.dispute_id, "dispute", None, None, _STATES[dispute.state], opened_at, version,
        status=dispute.status, due_at=dispute.seller_response_due_date,
    )  # fmt: skip
    return [
        replace(whole, payment_id=payment_id)
        if amount is None
        else replace(whole, payment_id=payment_id, amount=amount.amount, currency=amount.currency)
        for payment_id, amount in dispute.amounts.items()
    ]
