"""Admin API of withdrawals: lists them, and settles those whose result the platform no longer knows."""

from datetime import datetime
from typing import Any, Literal

from app.admin.area import FOR_EDITORS, FOR_VIEWERS
from app.admin.reasons import origin_with_reason
from app.http.paging import IdCursor, Page, SortedQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.transactions import Transaction
from storage.operators import audit
from storage.operators.audit import Subject
from storage.postgres.database import Connection
from storage.withdrawals import withdrawal_list, withdrawals
from storage.withdrawals.results import NOT_PAID, end_withdrawal
from storage.withdrawals.withdrawal_list import State, state_of
from storage.withdrawals.withdrawals import Withdrawal
from streams.wire.codec import rfc3339
from streams.wire.errors import Conflict, ItemNotFound, listed
from streams.wire.model import Model


class NoSuchWithdrawal(ItemNotFound):
    """The app has no withdrawal with this id."""

    def __init__(self, withdrawal_id: str) -> None:
        super().__init__(f"withdrawal {listed([withdrawal_id])} does not exist")


class ResultKnown(Conflict):
    """The withdrawal has ended, or its platform can still be asked for the result."""

    def __init__(self, withdrawal: Withdrawal) -> None:
        state = state_of(withdrawal).replace("_", " ")
        super().__init__(f"withdrawal {withdrawal.withdrawal_id} is {state}, so its result is not unknown")


class WithdrawalListQuery(SortedQuery[IdCursor]):
    app: str | None = None
    """List only withdrawals of this app."""
    state: State | None = None
    """List only withdrawals with this state."""


class WithdrawalPath(Model):
    app: str
    """An app of this server."""
    withdrawal_id: str
    """A withdrawal of the app: the id of this server."""


class Settlement(Model):
    outcome: Literal["paid", "failed"]
    """The result of the withdrawal."""


class WithdrawalRow(Model):
    """A withdrawal and its times."""

    withdrawal_id: str
    """The id of this server, and the `sender_batch_id` of the payout."""
    app: str
    user_id: str
    withdraw_id: str
    """The id that the app gave it."""
    platform: str
    config: str
    amount: int
    """In minor units of the currency."""
    currency: str
    state: State
    """`unknown`: in progress, but the platform no longer knows the result. Settle it."""
    reason: str
    """Why it failed, or why the last call to the platform failed."""
    payout_id: str
    """The platform's id of the payout, or empty."""
    created_at: str
    submitted_at: str | None = None
    """When the platform was first asked to pay."""
    unknown_at: str | None = None
    """When the result became unknown."""
    paid_at: str | None = None
    settled_at: str | None = None
    """When an operator has settled it. Absent: the platform reports its result."""


class AdminWithdrawalList(Page[str]):
    """A page of the withdrawals."""

    withdrawals: list[WithdrawalRow]


async def list_withdrawals(call: Call, query: Query[WithdrawalListQuery]) -> AdminWithdrawalList:
    """List withdrawals.

    The newest comes first.
    """
    found = await call.services.reads.read(
        lambda conn: withdrawal_list.page(
            conn,
            of_app=query.app,
            state=query.state,
            oldest_first=query.oldest_first,
            before=query.before,
            size=query.size + 1,
        )
    )
    page, further = page_of(found, query.size, lambda withdrawal: withdrawal.withdrawal_id)
    return AdminWithdrawalList(next=further, withdrawals=[_row(withdrawal) for withdrawal in page])


async def settle(
    call: Call, transaction: Transaction, path: Path[WithdrawalPath], body: Body[Settlement]
) -> WithdrawalRow:
    """Settle a withdrawal with an unknown result, as paid or failed.

    It ends as if the platform had reported this. A later report of the platform changes nothing, and is a mismatch
    if it differs. A repeat with the same outcome returns the same response. The header `X-Parley-Reason` is
    required.
    """
    origin_with_reason(call)
    async with transaction.begin() as conn:
        found = await withdrawals.find(conn, path.withdrawal_id)
        if found is None or found.app_id != path.app:
            raise NoSuchWithdrawal(path.withdrawal_id)
        locked = await withdrawals.lock(conn, path.withdrawal_id)
        if locked.unknown_at is not None:
            locked = await _settle_withdrawal(call, conn, locked, body)
        elif locked.settled_at is None or state_of(locked) != body.outcome:
            raise ResultKnown(locked)
        return transaction.answer(_row(locked))


async def _settle_withdrawal(
    call: Call, conn: Connection, locked: Withdrawal, settlement: Settlement
) -> Withdrawal:
    """End a withdrawal, record that in the audit log, and return the ended withdrawal."""
    now, is_paid = call.services.clock.now(locked.app_id), settlement.outcome == "paid"
    reason, paid_at = ("", now) if is_paid else (NOT_PAID, None)
    await end_withdrawal(
        conn, locked, payout_id=locked.payout_id, reason=reason, paid_at=paid_at, now=now, by_operator=True
    )
    after = await withdrawals.lock(conn, locked.withdrawal_id)
    subject = Subject(locked.app_id, "withdrawal", locked.withdrawal_id)
    await audit.record_change(
        conn, call.origin,
        action="withdrawal.settle", subject=subject, before=_audited(locked), after=_audited(after),
    )  # fmt: skip
    return after


def _audited(withdrawal: Withdrawal) -> dict[str, Any]:
    state, amount = state_of(withdrawal), str(withdrawal.money)
    return {"user_id": withdrawal.uid, "amount": amount, "state": state, "reason": withdrawal.reason}


def _row(found: Withdrawal) -> WithdrawalRow:
    return WithdrawalRow(
        withdrawal_id=found.withdrawal_id,
        app=found.app_id,
        user_id=found.uid,
        withdraw_id=found.app_withdraw_id,
        platform=found.platform,
        config=found.config,
        amount=found.amount,
        currency=found.currency,
        state=state_of(found),
        reason=found.reason,
        payout_id=found.payout_id,
        created_at=rfc3339(found.created_at),
        submitted_at=_moment(found.submitted_at),
        unknown_at=_moment(found.unknown_at),
        paid_at=_moment(found.paid_at),
        settled_at=_moment(found.settled_at),
    )


def _moment(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)


_PATH = "/admin/api/withdrawals"

ADMIN_WITHDRAWAL_ROUTES = [
    Endpoint("GET", _PATH, list_withdrawals, FOR_VIEWERS),
    Endpoint(
        "POST",
        f"{_PATH}/{{app}}/{{withdrawal_id}}/settle",
        settle,
        FOR_EDITORS,
        errors=(NoSuchWithdrawal, ResultKnown),
    ),
]
