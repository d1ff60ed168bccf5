"""PayPal's disputes: cases in which a payer wants money back (customer_disputes_v1 of PayPal's OpenAPI)."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field

from streams.wire.model import Moment
from streams.wire.money import Money
from vendors.objects import PartialObject, Readable
from vendors.payments.paypal.fields import Amount, Links, PayPalObject, linked

DisputeState = Literal["open", "lost", "won", "closed"]
_STATES: dict[str, DisputeState] = {
    "RESOLVED_BUYER_FAVOUR": "lost",
    "ACCEPTED": "lost",
    "RESOLVED_SELLER_FAVOUR": "won",
    "CANCELED_BY_BUYER": "won",
    "DENIED": "won",
}
"""By the outcome of a resolved dispute. After `RESOLVED_WITH_PAYOUT`, PayPal has paid one of both sides, and after
`NONE` there was no decision: only the payment itself then says whether its money is lost."""


class _Transaction(PayPalObject):
    seller_transaction_id: str = ""
    gross_amount: Amount | None = None


class _Outcome(PayPalObject):
    outcome_code: str = ""
    amount_refunded: Amount | None = None
    """What the payer gets back, which may be less than what was disputed."""


class Dispute(PayPalObject):
    dispute_id: str
    status: str = ""
    """`OPEN`, `WAITING_FOR_BUYER_RESPONSE`, `WAITING_FOR_SELLER_RESPONSE`, `UNDER_REVIEW`, `RESOLVED` or
    `OTHER`."""
    dispute_amount: Amount | None = None
    """What the payer disputes, which may be a part of the payment."""
    disputed_transactions: list[_Transaction] = Field(default_factory=list)
    dispute_outcome: _Outcome = _Outcome()
    create_time: Moment | None = None
    update_time: Moment | None = None
    seller_response_due_date: Moment | None = None
    """Until when the merchant can answer."""

    @property
    def state(self) -> DisputeState:
        return _STATES.get(self.dispute_outcome.outcome_code, "closed") if self.status == "RESOLVED" else "open"

    @property
    def amounts(self) -> dict[str, Money | None]:
        """What is disputed or was lost of each payment, by its id. `None`: all of the payment."""
        disputed = {
            transaction.seller_transaction_id: transaction.gross_amount
            for transaction in self.disputed_transactions
            if transaction.seller_transaction_id
        }
        if len(disputed) == 1:
            refunded = self.dispute_outcome.amount_refunded if self.state == "lost" else None
            return dict.fromkeys(disputed, self.dispute_amount if refunded is None else refunded)
        return disputed


class ListedDispute(PartialObject):
    """A dispute in a list, which is incomplete: read it by its id."""

    dispute_id: str
    create_time: Moment | None = None
    update_time: Moment | None = None


class DisputePage(PayPalObject):
    items: list[Readable[ListedDispute]] = Field(default_factory=list)
    links: Links = Field(default_factory=list)

    @property
    def next(self) -> str:
        """Names the next page. Empty: this is the last one."""
        return urlsplit(linked(self.links, "next")).query
