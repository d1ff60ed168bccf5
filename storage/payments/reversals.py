"""What takes payments back: their refunds, reversals and disputes, as the platforms report them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Literal

from storage.postgres.database import Connection

ReversalKind = Literal["refund", "reversal", "dispute"]
"""`refund`: the merchant has given the money back. `reversal`: a bank or the platform has taken it. `dispute`: a
case about the money, which the platform takes by a refund or a reversal."""
ReversalState = Literal["open", "taken", "undone", "closed"]
"""`open`: an undecided dispute. `taken`: the money is lost. `undone`: it is not, because a refund has failed, or a
dispute was won. `closed`: a dispute without a decision, after which refunds and reversals count alone."""


_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)


def version_at(at: datetime, *, is_later: bool = False) -> int:
    """Return a number that grows with the time of a state. `is_later` decides between equal milliseconds."""
    return 2 * ((at - _EPOCH) // _MILLISECOND) + is_later


@dataclass(frozen=True, slots=True)
class Reversal:
    """A refund, a reversal or a dispute of a payment. The fields are columns."""

    payment_id: str
    """A capture or a sale of the wallet, or the intent of a card."""
    reversal_id: str
    """The platform's id. It is that of the payment if the platform does not name what has refunded it."""
    kind: ReversalKind
    amount: int | None
    """Minor units. `None`: all of the payment."""
    currency: str | None
    state: ReversalState
    happened_at: datetime
    """When it began, by the platform."""
    version: int
    """A newer state has a greater number, that of `version_at`."""
    status: str = field(default="", compare=False, metadata={"is_detail": True})
    """The state as the platform names it. This and the next field are only stored for lists."""
    due_at: datetime | None = field(default=None, compare=False, metadata={"is_detail": True})
    """Until when the platform takes evidence for a dispute."""

    @property
    def changed_at(self) -> datetime:
        """When its state began, to the millisecond."""
        return _EPOCH + self.version // 2 * _MILLISECOND


_NAMES = tuple(each.name for each in fields(Reversal) if "is_detail" not in each.metadata)
_COLUMNS = ", ".join(_NAMES)
_PUT = f"""
insert into payment_reversals (app_id, platform, {_COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (app_id, platform, payment_id, reversal_id) do update set
    kind = case when excluded.kind = 'refund' then payment_reversals.kind else excluded.kind end,
    amount = case when excluded.version >= payment_reversals.version
        then excluded.amount else payment_reversals.amount end,
    state = case when excluded.version >= payment_reversals.version
        then excluded.state else payment_reversals.state end,
    version = greatest(payment_reversals.version, excluded.version)
"""


async def put(conn: Connection, app_id: str, *, platform: str, reversal: Reversal) -> None:
    """Store what was read of a reversal, unless something newer is stored.

    A list of refunds does not say which are reversals, so one that is known as a reversal stays one.
    """
    await conn.execute(_PUT, app_id, platform, *(getattr(reversal, name) for name in _NAMES))


_REMOVE = """
delete from payment_reversals where app_id = $1 and platform = $2 and payment_id = $3 and reversal_id = $3
"""


async def remove_unnamed(conn: Connection, app_id: str, *, platform: str, payment_id: str) -> None:
    """Remove the row that stands for refunds which the platform has not named."""
    await conn.execute(_REMOVE, app_id, platform, payment_id)


_OF_PAYMENTS = f"""
select {_COLUMNS} from payment_reversals where app_id = $1 and platform = $2 and payment_id = any($3)
order by happened_at, reversal_id
"""


async def of_payments(
    conn: Connection, app_id: str, *, platform: str, payment_ids: Sequence[str]
) -> list[Reversal]:
    """Return the reversals of payments, the oldest first."""
    rows = await conn.fetch(_OF_PAYMENTS, app_id, platform, list(payment_ids))
    return [Reversal(**row) for row in rows]
