"""Admin API: the report of mismatches between this server and payment platforms, which operators settle."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from app.admin.area import FOR_EDITORS, FOR_VIEWERS
from app.admin.reasons import origin_with_reason
from app.http.paging import Page, SortedQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path, Query
from app.http.rows.transactions import Transaction
from storage.payments import mismatches
from storage.payments.mismatches import Mismatch, MismatchKind
from streams.wire.codec import rfc3339
from streams.wire.errors import ItemNotFound, listed
from streams.wire.model import Model, QueryInt

_ID_DIGITS = 18


class MismatchNotFound(ItemNotFound):
    """No mismatch has this `mismatch_id`."""

    def __init__(self, mismatch_id: str) -> None:
        super().__init__(f"mismatch {listed([mismatch_id])} does not exist")


def _mismatch_id(text: Any) -> Any:
    if isinstance(text, str) and not (text.isascii() and text.isdecimal() and len(text) <= _ID_DIGITS):
        raise MismatchNotFound(text)
    return int(text)


class MismatchPath(Model):
    mismatch_id: Annotated[int, BeforeValidator(_mismatch_id)]
    """The mismatch, as listed."""


class MismatchQuery(SortedQuery[QueryInt]):
    app: str | None = None
    """Only this app. Default: all apps."""
    kind: MismatchKind | None = None
    """Only mismatches of this kind."""
    resolved: Literal["true", "false"] | None = None
    """`false`: only those into which somebody has to look. `true`: only the others, which an operator has settled
    or the server has repaired."""


class MismatchView(Model):
    """A mismatch between this server and a payment platform."""

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
    resolved: bool
    """Whether nobody has to look into it any more, because an operator has settled it or the server has repaired
    it."""
    resolved_at: str | None = None
    """When an operator has settled it."""
    resolved_by: str | None = None
    resolution: str | None = None
    """How it was settled, in the operator's words."""


class MismatchList(Page[int]):
    """A page of the mismatches."""

    mismatches: list[MismatchView]


async def list_mismatches(call: Call, query: Query[MismatchQuery]) -> MismatchList:
    """List mismatches between this server and payment platforms.

    They include events that no webhook has reported, which are already repaired, and cases that an operator has to
    look into. The newest comes first.
    """
    found = await call.services.reads.read(
        lambda conn: mismatches.page(
            conn,
            of_app=query.app,
            kind=query.kind,
            resolved=None if query.resolved is None else query.resolved == "true",
            oldest_first=query.oldest_first,
            before=query.before,
            size=query.size + 1,
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
        resolved=not found.is_open,
        resolved_at=None if found.resolved_at is None else rfc3339(found.resolved_at),
        resolved_by=found.resolved_by,
        resolution=found.resolution,
    )


async def resolve_mismatch(call: Call, transaction: Transaction, path: Path[MismatchPath]) -> MismatchView:
    """Record that a mismatch is settled.

    The header `X-Parley-Reason` is required, and says how it was settled. A mismatch that is settled already stays
    as it is.
    """
    origin = origin_with_reason(call)
    async with transaction.begin() as conn:
        found = await mismatches.resolve(conn, path.mismatch_id, origin=origin)
        if found is None:
            raise MismatchNotFound(str(path.mismatch_id))
        return transaction.answer(mismatch_view(found))


_PATH = "/admin/api/payments/mismatches"

MISMATCH_ROUTES = [
    Endpoint("GET", _PATH, list_mismatches, FOR_VIEWERS),
    Endpoint("POST", f"{_PATH}/{{mismatch_id}}/resolve", resolve_mismatch, FOR_EDITORS, errors=(MismatchNotFound,)),
]
