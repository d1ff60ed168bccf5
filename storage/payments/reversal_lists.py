"""The lists of refunds and disputes of all payments, for operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from storage.payments.reversals import Reversal
from storage.postgres.database import Connection
from storage.postgres.directions import directed

RefundState = Literal["pending", "made", "failed"]
DisputeState = Literal["open", "won", "lost", "closed"]
RefundedBy = Literal["operator", "bank", "other"]
ListKind = Literal["refund", "dispute"]


class Place(NamedTuple):
    """The position of a row in a list, which begins with the newest."""

    at: datetime
    payment_id: str
    id: str


@dataclass(frozen=True, slots=True)
class Listed:
    app_id: str
    uid: str
    platform: str
    order_id: str
    """The platform's id of the order or of the subscription."""
    payment_id: str
    reversal_id: str
    """The platform's id, or that of this server for a refund that the platform has not reported."""
    amount: int | None
    """In minor units. `None`: all of the payment."""
    currency: str | None
    happened_at: datetime
    state: Any
    """One of `RefundState` or `DisputeState`."""
    status: str
    """The state as the platform names it."""
    due_at: datetime | None
    by: RefundedBy
    problem: str

    @property
    def place(self) -> Place:
        return Place(self.happened_at, self.payment_id, self.reversal_id)


# Only if no newer state is stored: `payment_reversals` has that of this reversal or a newer one.
_PUT = """
insert into reversal_details
    (app_id, platform, payment_id, reversal_id, uid, order_id, is_dispute, status, due_at, happened_at)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 from payment_reversals
where app_id = $1 and platform = $2 and payment_id = $3 and reversal_id = $4 and version <= $11
on conflict (app_id, platform, payment_id, reversal_id) do update set
    status = excluded.status, due_at = excluded.due_at
"""


async def put_details(
    conn: Connection, app_id: str, uid: str, *, platform: str, order_id: str, reversal: Reversal
) -> None:
    """Store what lists show of a reversal that was just stored."""
    is_dispute = reversal.kind == "dispute" or (platform == "cardpay" and reversal.kind == "reversal")
    await conn.execute(
        _PUT, app_id, platform, reversal.payment_id, reversal.reversal_id, uid, order_id, is_dispute,
        reversal.status, reversal.due_at, reversal.happened_at, reversal.version,
    )  # fmt: skip


_REPORTED = """
select details.app_id, details.uid, details.platform, details.order_id, details.payment_id, details.reversal_id,
    reversal.amount, reversal.currency, details.happened_at, case reversal.state
        when 'open' then 'open' when 'closed' then 'closed'
        when 'undone' then case when is_dispute then 'won' else 'failed' end
        else case
            when not is_dispute then 'made'
            when details.platform = 'cardpay' and details.status <> 'lost' then 'open' else 'lost' end
    end as state, details.status, details.due_at,
    case when exists (
        select from operator_refunds asked
        where asked.app_id = details.app_id and asked.refund_id = details.reversal_id) then 'operator'
        when reversal.kind = 'reversal' then 'bank' else 'other' end as by, '' as problem
from reversal_details details, lateral (
    select * from payment_reversals own
    where own.app_id = details.app_id and own.platform = details.platform
        and own.payment_id = details.payment_id and own.reversal_id = details.reversal_id
    {fence}) reversal
where is_dispute = {is_dispute} and ($1::text is null or details.app_id = $1)
    and ($2::text is null or details.platform = $2)
    and ($4::timestamptz is null
        or (details.happened_at, details.payment_id, details.reversal_id) {{compare}} ($4, $5, $6))
"""
_ASKED = """
select app_id, uid, platform, order_id, payment_id, row_id as reversal_id, amount, currency,
    created_at as happened_at, case state when 'accepted' then 'pending' else state end as state, state as status,
    null::timestamptz as due_at, 'operator' as by, problem
from operator_refunds asked
where ($1::text is null or app_id = $1) and ($2::text is null or platform = $2)
    and ($4::timestamptz is null or (created_at, payment_id, row_id) {compare} ($4, $5, $6)) and not exists (
        select from payment_reversals reported
        where reported.app_id = asked.app_id and reported.platform = asked.platform
            and reported.payment_id = asked.payment_id and reported.reversal_id = asked.refund_id)
"""
_PAGE = """
select * from ({found}) found where $3::text is null or state = $3
order by happened_at {{order}}, payment_id {{order}}, reversal_id {{order}} limit $7
"""


def _pages(fence: str) -> Mapping[ListKind, str]:
    reported = {kind: _REPORTED.format(is_dispute=kind == "dispute", fence=fence) for kind in ("refund", "dispute")}
    refunds = [_PAGE.format(found=found) for found in (reported["refund"], _ASKED)]
    return {
        "refund": _PAGE.format(found=" union all ".join(f"({part})" for part in refunds)),
        "dispute": _PAGE.format(found=reported["dispute"]),
    }


# The fence keeps the planner from joining all rows: they are read in the order of an index until the page is full.
# That takes long for states that few rows have, for which all rows are joined at once.
_IN_ORDER, _JOINED = _pages("offset 0"), _pages("")
_FREQUENT = frozenset({None, "made", "lost"})


async def page(
    conn: Connection,
    kind: ListKind,
    *,
    of_app: str | None,
    platform: str | None,
    state: RefundState | DisputeState | None,
    oldest_first: bool = False,
    before: Place | None,
    size: int,
) -> Sequence[Listed]:
    """Return disputes, or refunds by merchants and banks and on behalf of operators.

    The newest comes first unless `oldest_first`.
    """
    place = before or (None, None, None)
    statement = directed((_IN_ORDER if state in _FREQUENT else _JOINED)[kind], oldest_first=oldest_first)
    rows = await conn.fetch(statement, of_app, platform, state, *place, size)
    return [Listed(**row) for row in rows]
