"""Refunds of payments that operators have asked for."""

from dataclasses import astuple, dataclass
from datetime import datetime
from typing import ClassVar, Literal

from storage.jobs.jobs import Job, due_in, enqueue
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.money import Money

State = Literal["pending", "accepted", "made", "failed"]
_REQUEST_S = 60
"""The time for the request that has stored a refund. After that, the job makes it."""
_READ_BACK_S = 600
"""After this time, a refund that the platform has only accepted is read back."""


class MakeRefund(Job):
    """Make a refund that an operator has asked for, if its request has not. Retried for up to a day."""

    task: ClassVar[str] = "make_refund"
    attempts: ClassVar[int] = 30
    app_id: str
    row_id: str


@dataclass(frozen=True, slots=True)
class OperatorRefund:
    """A refund. The fields are columns."""

    row_id: str
    app_id: str
    uid: str
    platform: str
    config: str
    order_row: str
    """The row of the payment or of the subscription."""
    order_id: str
    """The platform's id of the order or of the subscription."""
    payment_id: str
    """The intent of a card, or a capture or a sale of the wallet."""
    sale_id: str | None
    """The payment of a subscription, as the ledger names it: the invoice of a card, or the sale of the wallet."""
    amount: int
    currency: str
    request_key: str
    """The `Idempotency-Key` of the request."""
    state: State
    """`accepted`: the platform has it, and it is not made or not applied yet."""
    refund_id: str | None
    """The platform's id, once it is known."""
    problem: str
    """Why it has failed."""
    created_at: datetime

    @property
    def key(self) -> str:
        """The key of the call that makes it."""
        return f"{self.row_id}:refund"

    @property
    def money(self) -> Money:
        return Money(self.amount, self.currency)


COLUMNS = ", ".join(OperatorRefund.__slots__)
_ADD = f"""
insert into operator_refunds ({COLUMNS})
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
"""


async def add(conn: Connection, refund: OperatorRefund) -> None:
    """Store a refund, and the job that makes it if the request does not. The user is locked."""
    await conn.execute(_ADD, *astuple(refund))
    await _enqueue(conn, refund.app_id, row_id=refund.row_id, after_s=_REQUEST_S)


async def read_back_later(conn: Connection, app_id: str, *, row_id: str) -> None:
    """Store the job that reads back a refund which the platform has accepted."""
    await _enqueue(conn, app_id, row_id=row_id, after_s=_READ_BACK_S)


async def _enqueue(conn: Connection, app_id: str, *, row_id: str, after_s: float) -> None:
    job = MakeRefund(app_id=app_id, row_id=row_id)
    await enqueue(conn, job, key=f"{job.task}:{row_id}", run_at=due_in(after_s))


_GET = f"select {COLUMNS} from operator_refunds where app_id = $1 and row_id = $2"
_OF_KEY = f"select {COLUMNS} from operator_refunds where app_id = $1 and order_row = $2 and request_key = $3"


async def get(conn: Connection, app_id: str, *, row_id: str) -> OperatorRefund:
    """Return a refund that exists."""
    return OperatorRefund(**one(await conn.fetchrow(_GET, app_id, row_id)))


async def of_request(conn: Connection, app_id: str, *, order_row: str, key: str) -> OperatorRefund | None:
    """Return the refund that a request with this key has stored."""
    row = await conn.fetchrow(_OF_KEY, app_id, order_row, key)
    return None if row is None else OperatorRefund(**row)


_UNREPORTED = """
select coalesce(sum(amount), 0)::bigint from operator_refunds refund
where app_id = $1 and platform = $2 and payment_id = $3 and currency = $4
    and (state in ('pending', 'accepted') or state = 'made' and refund_id is not null)
    and not exists (
        select from payment_reversals where app_id = $1 and platform = $2 and payment_id = $3
            and reversal_id = refund.refund_id)
"""


async def unreported(conn: Connection, app_id: str, *, platform: str, payment_id: str, currency: str) -> Money:
    """Return how much of a payment operators refund or have refunded that the platform has not reported."""
    return Money(await conn.fetchval(_UNREPORTED, app_id, platform, payment_id, currency), currency)


_ACCEPTED = """
update operator_refunds set state = 'accepted', refund_id = $3
where app_id = $1 and row_id = $2 and state in ('pending', 'accepted')
"""
_MADE = """
update operator_refunds set state = 'made' where app_id = $1 and row_id = $2 and state in ('pending', 'accepted')
"""
_FAILED = """
update operator_refunds set state = 'failed', problem = $3
where app_id = $1 and row_id = $2 and state in ('pending', 'accepted') returning true
"""
_FAILED_LATER = """
update operator_refunds set state = 'failed', problem = $3
where app_id = $1 and refund_id = $2 and state <> 'failed' returning true
"""


async def set_accepted(conn: Connection, app_id: str, *, row_id: str, refund_id: str | None) -> None:
    """Record that the platform has a refund, whose result is not known or not applied yet."""
    await conn.execute(_ACCEPTED, app_id, row_id, refund_id)


async def set_made(conn: Connection, app_id: str, *, row_id: str) -> None:
    """Record that the platform has made a refund, and that it was applied."""
    await conn.execute(_MADE, app_id, row_id)


async def set_failed(conn: Connection, app_id: str, *, row_id: str, problem: str) -> bool:
    """Record that the platform will never make a refund. Return `False` if its result is recorded already."""
    return await conn.fetchval(_FAILED, app_id, row_id, problem) is not None


async def set_failed_later(conn: Connection, app_id: str, *, refund_id: str, problem: str) -> bool:
    """Record that a refund has failed. Return `False` if that is known, or if no operator has asked for it."""
    return await conn.fetchval(_FAILED_LATER, app_id, refund_id, problem) is not None
