"""Admin API: the report of mismatches between this server and payment platforms."""

from app.admin.area import FOR_VIEWERS
from app.http.paging import Page, PageQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from storage.payments import mismatches
from storage.payments.mismatches import Mismatch, MismatchKind
from streams.wire.codec import rfc3339
from streams.wire.model import Model, QueryInt


class MismatchQuery(PageQuery[QueryInt]):
    app: str | None = None
    """Only this app. Default: all apps."""
    kind: MismatchKind | None = None
    """Only mismatches of this kind."""


class MismatchView(Model):
    mismatch_id: int
    app: str
    platform: str
    kind: str
    """`missed_event`: no webhook has delivered an event. `missed_entry`: an entry of the ledger was found by
    reading back. `unreadable_event`: an event in the platform's list cannot be read; read the object that it names
    there. `refund_refused`: the platform does not make a refund, or only a part of it; do the rest by hand
    unless it was refunded by hand before. `refund_failed`: it has accepted a refund and not made it; do it by hand.
    `amount_differs`: another amount was paid than was ordered; for an order or a single payment, which has granted
    nothing, refund it. `payout_unknown`: the platform has forgotten a payout before its result was known, or the
    account that was asked is no longer configured. `payout_returned`: it has taken a payment back.
    `payout_paid_after_failure`: it has paid a withdrawal that had failed. `payout_settled_otherwise`: it reports
    another result than an operator has settled. The guide to payments says what to do."""
    subject: str
    """The event, the key of the entry, the payment, or the withdrawal."""
    detail: str
    found_at: str


class MismatchList(Page[int]):
    mismatches: list[MismatchView]


async def list_mismatches(call: Call, query: Query[MismatchQuery]) -> MismatchList:
    """List mismatches between this server and payment platforms.

    They include events that no webhook has reported, which are already repaired, and cases that an operator has to
    look into. The newest comes first.
    """
    found = await call.services.reads.read(
        lambda conn: mismatches.page(
            conn, of_app=query.app, kind=query.kind, before=query.before, size=query.size + 1
        )
    )
    page, further = page_of(found, query.size, lambda mismatch: mismatch.mismatch_id)
    return MismatchList(next=further, mismatches=[mismatch_view(mismatch) for mismatch in page])


def mismatch_view(found: Mismatch) -> MismatchView:
    return MismatchView(
        mismatch_id=found.mismatch_id,
        app=found.app_id,
        platform=found.platform,
        kind=found.kind,
        subject=found.subject,
        detail=found.detail,
        found_at=rfc3339(found.found_at),
    )


MISMATCH_ROUTES = [Endpoint("GET", "/admin/api/payments/mismatches", list_mismatches, FOR_VIEWERS)]
