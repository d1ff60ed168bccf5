"""PayPal's payouts: batches of one payment each, to the address of a receiver."""

import re

from pydantic import Field

from streams.wire.model import Moment
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.fields import Amount, PayPalObject

PAYOUTS = "/v1/payments/payouts"
_BAD_REQUEST = 400
_REPEATED = re.compile("duplicate|already exists|sender_batch_id", re.IGNORECASE)
"""In errors that name the id of a batch, or say that there is one with this id."""


class _ItemErrors(PayPalObject):
    name: str = ""


class PayoutItem(PayPalObject):
    """A payment to a receiver."""

    payout_item_id: str
    transaction_id: str = ""
    transaction_status: str = ""
    """`SUCCESS`, `FAILED`, `PENDING`, `UNCLAIMED`, `RETURNED`, `ONHOLD`, `BLOCKED`, `REFUNDED` or `REVERSED`."""
    payout_item_fee: Amount | None = None
    time_processed: Moment | None = None
    errors: _ItemErrors = _ItemErrors()

    @property
    def error(self) -> str:
        """Why it has failed, such as `RECEIVER_UNREGISTERED`."""
        return self.errors.name


class _BatchHeader(PayPalObject):
    payout_batch_id: str
    batch_status: str
    time_created: Moment | None = None
    time_completed: Moment | None = None


class Payout(PayPalObject):
    batch_header: _BatchHeader
    items: list[PayoutItem] = Field(default_factory=list)
    """Empty in the answer to the call that makes the batch."""

    @property
    def id(self) -> str:
        """PayPal's id of the batch."""
        return self.batch_header.payout_batch_id

    @property
    def status(self) -> str:
        """`DENIED`, `PENDING`, `PROCESSING`, `SUCCESS` (each payment has been tried) or `CANCELED`."""
        return self.batch_header.batch_status

    @property
    def item(self) -> PayoutItem | None:
        return self.items[0] if self.items else None


def is_duplicate(error: PayPalRefused) -> bool:
    """Return whether a batch with this id exists already.

    PayPal reports this in sentences that have changed: "Duplicate batch request", and "Batch with given
    sender_batch_id already exists" with a link to the batch. So any error about the id of a batch counts: it is
    not a refusal to pay.
    """
    repeated = _REPEATED.search(f"{error.field} {error.issue} {error.name}") is not None
    return error.vendor_status == _BAD_REQUEST and (repeated or error.linked_id(PAYOUTS) is not None)
