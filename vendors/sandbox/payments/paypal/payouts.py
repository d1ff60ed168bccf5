"""Payouts of the sandbox's PayPal. The name before the @ of the receiver determines the result of a payment."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from streams.wire.money import Money
from vendors.sandbox.payments.paypal.amounts import read_amount, written_payout
from vendors.sandbox.payments.paypal.records import Item, Payout
from vendors.sandbox.payments.paypal.state import Merchant
from vendors.sandbox.payments.paypal.wire import not_found, refusal, time_text

_REMEMBERED_FOR = timedelta(days=30)
_UNCLAIMED_FOR = timedelta(days=30)
_MAX_ITEMS = 15_000
_PATH = "/v1/payments/payouts"

OUTCOMES: Mapping[str, tuple[str, str]] = {
    "unregistered": ("UNCLAIMED", "RECEIVER_UNREGISTERED"),
    "locked": ("FAILED", "RECEIVER_ACCOUNT_LOCKED"),
    "country": ("FAILED", "RECEIVER_COUNTRY_NOT_ALLOWED"),
    "limit": ("FAILED", "TRANSACTION_LIMIT_EXCEEDED"),
    "nofunds": ("FAILED", "INSUFFICIENT_FUNDS"),
    "regulatory": ("BLOCKED", "REGULATORY_BLOCKED"),
    "returned": ("RETURNED", "RECEIVER_UNREGISTERED"),
    "hold": ("ONHOLD", "RECEIVER_UNCONFIRMED"),
    "slow": ("PENDING", ""),
}
"""The state of a payment and its error, by the receiver's name. A payment to any other receiver succeeds."""
_EVENTS = {
    "SUCCESS": "SUCCEEDED",
    "FAILED": "FAILED",
    "UNCLAIMED": "UNCLAIMED",
    "RETURNED": "RETURNED",
    "BLOCKED": "BLOCKED",
    "ONHOLD": "HELD",
    "REFUNDED": "REFUNDED",
    "REVERSED": "REVERSED",
}


def create(merchant: Merchant, body: dict[str, Any]) -> dict[str, Any]:
    header, items = body.get("sender_batch_header"), body.get("items")
    if not isinstance(header, dict) or not isinstance(items, list) or not 1 <= len(items) <= _MAX_ITEMS:
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", name="VALIDATION_ERROR")
    batch_id = header.get("sender_batch_id")
    for known in merchant.payouts.values():
        same = batch_id and known.header.get("sender_batch_id") == batch_id
        if same and merchant.now - known.created_at <= _REMEMBERED_FOR:
            raise _duplicate(merchant, known)
    made = [_item(merchant, item, f"/items/{index}", header) for index, item in enumerate(items)]
    if any(item.receiver.startswith("nomoney@") for item in made):
        raise refusal(
            422, "INSUFFICIENT_FUNDS", "Sender does not have sufficient funds.", name="INSUFFICIENT_FUNDS"
        )
    payout = Payout(header, made, merchant.now, "PENDING")
    merchant.payouts[payout.id] = payout
    answer = {"batch_header": _header(payout), "links": [merchant.link("self", f"{_PATH}/{payout.id}")]}
    _process(merchant, payout)
    return answer


def payout_of(merchant: Merchant, payout_id: str) -> Payout:
    payout = merchant.payouts.get(payout_id)
    if payout is None:
        raise not_found()
    return payout


def advance(merchant: Merchant, payout: Payout) -> None:
    """Return payments that were not claimed for 30 days by the merchant's clock."""
    for item in payout.items:
        if item.status == "UNCLAIMED" and merchant.now - item.at > _UNCLAIMED_FOR:
            set_item_status(merchant, payout, item, "RETURNED")


def set_item_status(merchant: Merchant, payout: Payout, item: Item, status: str) -> None:
    """Give a payment another state, and complete its batch."""
    item.status = status
    item.error = item.error if status not in {"SUCCESS", "PENDING"} else ""
    if status in _EVENTS:
        resource = _item_object(merchant, payout, item)
        merchant.emit(f"PAYMENT.PAYOUTS-ITEM.{_EVENTS[status]}", "payouts_item", resource, at=merchant.now)
    if payout.status == "PROCESSING" and all(item.status != "PENDING" for item in payout.items):
        payout.status = "SUCCESS"
        merchant.emit("PAYMENT.PAYOUTSBATCH.SUCCESS", "payouts", _event(payout), at=merchant.now)


def to_object(merchant: Merchant, payout: Payout) -> dict[str, Any]:
    amount = Money(sum(item.amount.amount for item in payout.items), payout.items[0].amount.currency)
    header = {
        **_header(payout),
        "funding_source": "BALANCE",
        "amount": written_payout(amount),
        "fees": written_payout(Money(0, amount.currency)),
        **({"time_completed": time_text(payout.created_at)} if payout.status == "SUCCESS" else {}),
    }
    return {
        "batch_header": header,
        "items": [_item_object(merchant, payout, item) for item in payout.items],
        "links": [merchant.link("self", f"{_PATH}/{payout.id}")],
    }


def _duplicate(merchant: Merchant, first: Payout) -> Exception:
    """Return the refusal of a batch whose id was used before. The link is in the detail."""
    detail = {
        "field": "SENDER_BATCH_ID",
        "location": "body",
        "issue": "Batch with given sender_batch_id already exists",
        "link": [merchant.link("self", f"{_PATH}/{first.id}")],
    }
    return refusal(400, name="USER_BUSINESS_ERROR", message="User business error.", details=[detail])


def _item(merchant: Merchant, item: Any, at: str, header: dict[str, Any]) -> Item:
    if not isinstance(item, dict) or not isinstance(item.get("receiver"), str) or not item["receiver"]:
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at=f"{at}/receiver")
    kind = item.get("recipient_type", header.get("recipient_type"))
    if kind not in {"EMAIL", "PHONE", "PAYPAL_ID"}:
        raise refusal(400, "INVALID_PARAMETER_VALUE", "The value of a field is invalid.", at=f"{at}/recipient_type")
    amount = read_amount(item.get("amount"), f"{at}/amount", code="currency")
    return Item({**item, "recipient_type": kind}, amount, merchant.now, "PENDING", "")


def _process(merchant: Merchant, payout: Payout) -> None:
    if any(item.receiver.startswith("denied@") for item in payout.items):
        payout.status = "DENIED"
        merchant.emit("PAYMENT.PAYOUTSBATCH.DENIED", "payouts", _event(payout), at=merchant.now)
        return
    payout.status = "PROCESSING"
    for item in payout.items:
        status, item.error = OUTCOMES.get(item.receiver.partition("@")[0], ("SUCCESS", ""))
        if status != "PENDING":
            set_item_status(merchant, payout, item, status)


def _header(payout: Payout) -> dict[str, Any]:
    return {
        "payout_batch_id": payout.id,
        "batch_status": payout.status,
        "time_created": time_text(payout.created_at),
        "sender_batch_header": payout.header,
    }


def _event(payout: Payout) -> dict[str, Any]:
    return {"batch_header": _header(payout)}


def _item_object(merchant: Merchant, payout: Payout, item: Item) -> dict[str, Any]:
    errors = {"name": item.error, "message": item.error, "debug_id": "", "information_link": ""}
    return {
        "payout_item_id": item.id,
        **({"transaction_id": f"T{item.id}"} if item.status != "PENDING" else {}),
        "transaction_status": item.status,
        "payout_item_fee": written_payout(Money(0, item.amount.currency)),
        "payout_batch_id": payout.id,
        "payout_item": item.request,
        **({"time_processed": time_text(item.at)} if item.status != "PENDING" else {}),
        **({"errors": errors} if item.error else {}),
        "links": [merchant.link("self", f"/v1/payments/payouts-item/{item.id}")],
    }
