"""Admin API: the lists of refunds and disputes of payments."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from app.admin.area import FOR_VIEWERS
from app.http.paging import Page, SortedQuery, cursor, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from storage.payments import reversal_lists
from storage.payments.reversal_lists import DisputeState, Listed, ListKind, Place, RefundedBy, RefundState
from streams.wire.codec import rfc3339
from streams.wire.model import Model

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_LATEST = 10**16
"""Microseconds of the year 2286."""


def _place_in(text: str) -> Place | None:
    micros, _, rest = text.partition(":")
    payment_id, found, name = rest.partition(":")
    if not (found and micros.isascii() and micros.isdecimal() and int(micros) < _LATEST):
        return None
    return Place(_EPOCH + int(micros) * _MICROSECOND, payment_id, name)


def _cursor_of(listed: Listed) -> str:
    at, payment_id, name = listed.place
    return f"{(at - _EPOCH) // _MICROSECOND}:{payment_id}:{name}"


PlaceCursor = Annotated[str, Field(max_length=300), cursor(_place_in)]
"""The position of a refund or a dispute in its list."""


class _ReversalQuery(SortedQuery[PlaceCursor]):
    app: str | None = None
    """List only those of this app."""
    platform: Literal["cardpay", "walletpay"] | None = None
    """List only those of this platform."""

    @property
    def place(self) -> Place | None:
        return None if self.before is None else _place_in(self.before)


class RefundListQuery(_ReversalQuery):
    state: RefundState | None = None
    """List only those with this state."""


class DisputeListQuery(_ReversalQuery):
    state: DisputeState | None = None
    """List only those with this state."""


class _ReversalRow(Model):
    app: str
    user_id: str
    platform: str
    """`cardpay` or `walletpay`."""
    order_id: str
    """The platform's id of the order or of the subscription."""
    payment_id: str
    """The platform's id of the payment: the intent of a card, or the capture or sale of the wallet."""
    amount: int | None = None
    """In minor units of the currency. Absent: all of the payment."""
    currency: str | None = None


class RefundRow(_ReversalRow):
    refund_id: str
    """The platform's id. Until the platform has reported the refund, the id of this server."""
    state: RefundState
    by: RefundedBy
    """`operator`: an operator has asked for it. `bank`: a bank has taken the money. `other`: this server, or the
    merchant at the platform."""
    problem: str
    """Why the refund of an operator has failed."""
    refunded_at: str


class DisputeRow(_ReversalRow):
    dispute_id: str
    state: DisputeState
    """`closed`: it has ended without a decision."""
    status: str
    """The state as the platform names it."""
    evidence_due_at: str | None = None
    """Until when the platform takes evidence, if it says so."""
    opened_at: str


class RefundList(Page[str]):
    """A page of the refunds."""

    refunds: list[RefundRow]


class DisputeList(Page[str]):
    """A page of the disputes."""

    disputes: list[DisputeRow]


async def list_refunds(call: Call, query: Query[RefundListQuery]) -> RefundList:
    """List refunds.

    They are made by operators, by this server, by the merchant at the platform, and by banks. The newest comes
    first.
    """
    page, further = await _page(call, query, kind="refund")
    return RefundList(next=further, refunds=[_refund_row(listed) for listed in page])


async def list_disputes(call: Call, query: Query[DisputeListQuery]) -> DisputeList:
    """List disputes of payments.

    Each has the time until which the platform takes evidence. The newest comes first.
    """
    page, further = await _page(call, query, kind="dispute")
    return DisputeList(next=further, disputes=[_dispute_row(listed) for listed in page])


async def _page(
    call: Call, query: RefundListQuery | DisputeListQuery, *, kind: ListKind
) -> tuple[Sequence[Listed], str | None]:
    found = await call.services.reads.read(
        lambda conn: reversal_lists.page(
            conn,
            kind,
            of_app=query.app,
            platform=query.platform,
            state=query.state,
            oldest_first=query.oldest_first,
            before=query.place,
            size=query.size + 1,
        )
    )
    return page_of(found, query.size, _cursor_of)


def _refund_row(listed: Listed) -> RefundRow:
    return RefundRow(
        **_payment_of(listed),
        refund_id=listed.reversal_id,
        state=listed.state,
        by=listed.by,
        problem=listed.problem,
        refunded_at=rfc3339(listed.happened_at),
    )


def _dispute_row(listed: Listed) -> DisputeRow:
    return DisputeRow(
        **_payment_of(listed),
        dispute_id=listed.reversal_id,
        state=listed.state,
        status=listed.status,
        evidence_due_at=None if listed.due_at is None else rfc3339(listed.due_at),
        opened_at=rfc3339(listed.happened_at),
    )


def _payment_of(listed: Listed) -> dict[str, Any]:
    """Return the fields of a row about the payment."""
    return {
        "app": listed.app_id,
        "user_id": listed.uid,
        "platform": listed.platform,
        "order_id": listed.order_id,
        "payment_id": listed.payment_id,
        "amount": listed.amount,
        "currency": listed.currency,
    }


REVERSAL_ROUTES = [
    Endpoint("GET", "/admin/api/payments/refunds", list_refunds, FOR_VIEWERS),
    Endpoint("GET", "/admin/api/payments/disputes", list_disputes, FOR_VIEWERS),
]
