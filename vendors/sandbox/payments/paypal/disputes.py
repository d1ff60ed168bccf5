"""Disputes of the sandbox's PayPal: a payer wants the money of a payment back, and PayPal decides.

The objects are those of customer_disputes_v1 of PayPal's OpenAPI.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from streams.wire.codec import from_rfc3339
from streams.wire.errors import InvalidParameter
from streams.wire.money import Money
from vendors.sandbox.payments.paypal.amounts import written
from vendors.sandbox.payments.paypal.records import Dispute, Outcome, Payment
from vendors.sandbox.payments.paypal.sales import reverse
from vendors.sandbox.payments.paypal.state import Merchant
from vendors.sandbox.payments.paypal.wire import not_found

_PATH = "/v1/customer/disputes"
_PAGE = 10
_MAX_PAGE = 50
_ANSWER_FOR = timedelta(days=10)
_LOST = frozenset({"RESOLVED_BUYER_FAVOUR", "ACCEPTED"})
_WON = frozenset({"RESOLVED_SELLER_FAVOUR", "CANCELED_BY_BUYER", "DENIED"})


def open_dispute(merchant: Merchant, payment: Payment, amount: Money, *, reverses: bool) -> None:
    """Open a dispute. `reverses`: the payer's bank takes the money at once, as in a chargeback of a card."""
    dispute = Dispute(payment, amount, merchant.now)
    merchant.disputes[dispute.id] = dispute
    _emit(merchant, dispute, "CREATED")
    if reverses:
        dispute.reversal = reverse(merchant, payment, amount)


def resolve(merchant: Merchant, dispute: Dispute, outcome: Outcome, *, amount: Money | None = None) -> None:
    """Decide a dispute. The money is taken if it is lost, and given back if it was taken and the dispute is won.

    `amount` is the part of the disputed money that is taken, unless a reversal has taken it before.
    """
    if dispute.outcome is not None:
        raise InvalidParameter(f"the dispute is {dispute.outcome}")
    if amount is not None and (outcome not in _LOST or dispute.reversal is not None):
        raise InvalidParameter("only a lost dispute without a reversal takes another amount")
    dispute.outcome, dispute.changed_at = outcome, merchant.now
    if outcome in _LOST and dispute.reversal is None:
        dispute.reversal = reverse(merchant, dispute.payment, dispute.amount if amount is None else amount)
    dispute.refunded = dispute.reversal.amount if outcome in _LOST and dispute.reversal is not None else None
    if outcome in _WON and dispute.reversal is not None:
        dispute.reversal.status = "CANCELLED"
        dispute.payment.undo_refund(dispute.reversal.amount, at=merchant.now)
        dispute.payment.reason = ""
        dispute.reversal = None
    _emit(merchant, dispute, "RESOLVED")


def reopen(merchant: Merchant, dispute: Dispute) -> None:
    """Open a dispute again, after an appeal."""
    dispute.outcome, dispute.changed_at = None, merchant.now
    _emit(merchant, dispute, "UPDATED")


def dispute_of(merchant: Merchant, dispute_id: str) -> Dispute:
    dispute = merchant.disputes.get(dispute_id)
    if dispute is None:
        raise not_found()
    return dispute


def to_object(merchant: Merchant, dispute: Dispute) -> dict[str, Any]:
    decided: dict[str, Any] = {"outcome_code": dispute.outcome}
    if dispute.refunded is not None:
        decided["amount_refunded"] = written(dispute.refunded)
    outcome = {"dispute_outcome": decided} if dispute.outcome else {}
    due = {} if dispute.outcome else {"seller_response_due_date": _text(dispute.at + _ANSWER_FOR)}
    transaction = {
        "seller_transaction_id": dispute.payment.id,
        "create_time": _text(dispute.payment.at),
        "transaction_status": "COMPLETED",
        "gross_amount": written(dispute.payment.amount),
        "custom": dispute.payment.custom_id,
    }
    return {**_summary(merchant, dispute), "disputed_transactions": [transaction], **due, **outcome}


def _summary(merchant: Merchant, dispute: Dispute) -> dict[str, Any]:
    return {
        "dispute_id": dispute.id,
        "create_time": _text(dispute.at),
        "update_time": _text(dispute.changed_at or dispute.at),
        "reason": "UNAUTHORISED",
        "status": "RESOLVED" if dispute.outcome else "WAITING_FOR_SELLER_RESPONSE",
        "dispute_state": "RESOLVED" if dispute.outcome else "REQUIRED_ACTION",
        "dispute_amount": written(dispute.amount),
        "dispute_life_cycle_stage": "CHARGEBACK",
        "dispute_channel": "INTERNAL",
        "links": [merchant.link("self", f"{_PATH}/{dispute.id}")],
    }


def listed(merchant: Merchant, query: Mapping[str, str]) -> dict[str, Any]:
    """List disputes as summaries, without their payments and outcomes, the latest first.

    A page has at most 50. A token in the link `next` names the next one.
    """
    size, first = min(int(query.get("page_size", _PAGE)), _MAX_PAGE), int(query.get("next_page_token", 0))
    found = [dispute for dispute in reversed(merchant.disputes.values()) if _matches(dispute, query)]
    links = [merchant.link("self", f"{_PATH}?{urlencode(query)}")]
    if len(found) > first + size:
        links.append(merchant.link("next", f"{_PATH}?{urlencode({**query, 'next_page_token': first + size})}"))
    return {"items": [_summary(merchant, dispute) for dispute in found[first : first + size]], "links": links}


def _matches(dispute: Dispute, query: Mapping[str, str]) -> bool:
    after, before = query.get("update_time_after"), query.get("update_time_before")
    changed_at = from_rfc3339(_text(dispute.changed_at or dispute.at))
    return (
        query.get("disputed_transaction_id") in {None, dispute.payment.id}
        and (after is None or changed_at >= from_rfc3339(after))
        and (before is None or changed_at <= from_rfc3339(before))
    )


def _emit(merchant: Merchant, dispute: Dispute, what: str) -> None:
    merchant.emit(f"CUSTOMER.DISPUTE.{what}", "dispute", to_object(merchant, dispute), at=merchant.now)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
