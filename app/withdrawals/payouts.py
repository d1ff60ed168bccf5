"""Payouts: a withdrawal is submitted to its platform once, and read back until it has ended.

The account that is asked knows a withdrawal by our id, and a call that repeats the id returns the first payout. So
a withdrawal whose result is unknown is never submitted under another id, nor to another account.
"""

from datetime import datetime, timedelta
from typing import Any

import structlog
from prometheus_client import Counter

from app.platforms.paypal import account_of
from app.services import Services
from app.withdrawals.errors import PLATFORM_UNAVAILABLE, reason_of
from storage.configs.kinds.payouts import PAYOUTS
from storage.payments import mismatches
from storage.payments.mismatches import MismatchKind
from storage.postgres.database import Connection
from storage.withdrawals import withdrawals
from storage.withdrawals.results import end_withdrawal
from storage.withdrawals.withdrawals import CheckPayouts, PayOut, Withdrawal, pay_out_soon
from streams.wire.errors import ConfigInvalid
from vendors.errors import VendorError
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.payouts import Payout, is_duplicate

log = structlog.get_logger()

CHECK_AGAIN = timedelta(seconds=20)
"""An open withdrawal is read back at least every 30 s: the rounds are 10 s apart."""
_CHECK_FIRST = timedelta(seconds=5)
"""How long after its submission a withdrawal is first read back."""
_REMEMBERED = timedelta(days=29)
"""The platform forgets our id after 30 days. A payout that is not known by then is left to an operator."""
_ROUND = 500
_FINAL = frozenset({400, 422})
"""Statuses of a final refusal. Others, such as missing rights of our app, can be fixed by an operator."""
_FAILED_ITEMS = frozenset({"FAILED", "RETURNED", "BLOCKED", "REFUNDED", "REVERSED"})
_FAILED_BATCHES = frozenset({"DENIED", "CANCELED"})


RETURNED = Counter("parley_withdrawals_returned", "Withdrawals that were paid, and returned later")


class _AskedElsewhere(Exception):
    """Another account was asked to pay, and may have done so."""


async def check_payouts(services: Services, _: CheckPayouts) -> None:
    """Store a job for each open withdrawal that is due."""
    for app_id in services.configs.apps():
        now = services.clock.now(app_id)
        async with services.database.transaction() as conn:
            due = await withdrawals.take_due(conn, app_id, now=now, next_check=now + CHECK_AGAIN, limit=_ROUND)
            for withdrawal in due:
                await pay_out_soon(conn, withdrawal)


async def pay_out(services: Services, job: PayOut, *, reported_id: str = "") -> None:
    """Submit a withdrawal or read it back, and store the result. A failed call is repeated later.

    `reported_id` is the platform's id of the payout, from a webhook. It serves to read the payout once the platform
    has forgotten our id.
    """
    async with services.database.connection() as conn:
        withdrawal = await withdrawals.find(conn, job.withdrawal_id)
    assert withdrawal is not None, "withdrawals are not deleted"
    payout_id = withdrawal.payout_id or reported_id
    try:
        payout = await (
            _read_payout(services, withdrawal, payout_id) if payout_id else _submit_withdrawal(services, withdrawal)
        )
    except (VendorError, ConfigInvalid) as error:
        if _is_lost(services, withdrawal, error):
            await _leave_to_operators(services, withdrawal, detail=_asked(withdrawal))
        else:
            await _postpone(services, withdrawal, cause=str(error))
        return
    if payout is not None:
        async with services.database.transaction() as conn:
            await _apply_payout(services, conn, withdrawal, payout)


async def _read_payout(services: Services, withdrawal: Withdrawal, payout_id: str) -> Payout:
    return await account_of(services, PAYOUTS, withdrawal.app_id, name=withdrawal.config).payout(payout_id)


def _is_lost(services: Services, withdrawal: Withdrawal, error: VendorError | ConfigInvalid) -> bool:
    """Return whether a payout that was made can no longer be read.

    Its account is no longer configured, or the platform no longer keeps it.
    """
    if not (withdrawal.payout_id and isinstance(error, PayPalRefused) and error.not_found):
        return False
    account = account_of(services, PAYOUTS, withdrawal.app_id, name=withdrawal.config)
    now = services.clock.now(withdrawal.app_id)
    return withdrawal.account != account.label or now - (withdrawal.submitted_at or now) > _REMEMBERED


def _asked(withdrawal: Withdrawal) -> str:
    """Return the details by which an operator finds a payout: its amount, its id, and the account."""
    asked = withdrawal.account or "an account that is not recorded"
    return ", ".join(part for part in (str(withdrawal.money), withdrawal.payout_id, f"asked: {asked}") if part)


async def _submit_withdrawal(services: Services, withdrawal: Withdrawal) -> Payout | None:
    """Make the payout of a withdrawal, or return the one that the platform has made. `None`: there is none."""
    now, receiver = services.clock.now(withdrawal.app_id), withdrawal.receiver
    if withdrawal.status != "START" or withdrawal.unknown_at is not None:
        return None
    if receiver is None or now - (withdrawal.submitted_at or now) > _REMEMBERED:
        await _leave_to_operators(services, withdrawal, detail=str(withdrawal.money))
        return None
    account = account_of(services, PAYOUTS, withdrawal.app_id, name=withdrawal.config)
    note, name = withdrawal.request.get("desc", ""), withdrawal.withdrawal_id

    async def mark_submitted() -> None:
        # Not earlier: an account that does not exist has paid nothing, so its config may still be corrected.
        async with services.database.connection() as conn:
            if not await withdrawals.mark_submitted(conn, name, account=account.label, now=now):
                raise _AskedElsewhere

    try:
        return await account.create_payout(
            name, receiver=receiver, amount=withdrawal.money, note=note, before=mark_submitted
        )
    except _AskedElsewhere:
        await _leave_to_operators(services, withdrawal, detail=_asked(withdrawal))
    except PayPalRefused as error:
        if not _is_final(error):
            raise
        async with services.database.transaction() as conn:
            await _apply_result(
                services, conn, withdrawal, payout_id="", reason=reason_of(error.issue), paid_at=None
            )
    return None


async def _leave_to_operators(services: Services, withdrawal: Withdrawal, *, detail: str) -> None:
    """Mark a withdrawal whose result cannot be determined, and report it.

    The platform has forgotten our id, or the account that was asked is no longer configured. If the id of the
    payout is known, it is still read back.
    """
    now = services.clock.now(withdrawal.app_id)
    async with services.database.transaction() as conn:
        locked = await withdrawals.lock(conn, withdrawal.withdrawal_id)
        if locked.status != "START" or locked.payout_id != withdrawal.payout_id:
            return
        await withdrawals.mark_unknown(conn, locked.withdrawal_id, since=locked.unknown_at or now)
        if await _report_mismatch(services, conn, locked, kind="payout_unknown", detail=detail):
            _bound(locked).error("withdrawal.unknown", detail=detail)


def _is_final(error: PayPalRefused) -> bool:
    """Return whether the platform has paid nothing, and never will for this id."""
    return error.vendor_status in _FINAL and not error.retryable and not is_duplicate(error)


async def _postpone(services: Services, withdrawal: Withdrawal, *, cause: str) -> None:
    now = services.clock.now(withdrawal.app_id)
    log.warning(
        "withdrawal.postponed", app_id=withdrawal.app_id, withdrawal_id=withdrawal.withdrawal_id, cause=cause
    )
    async with services.database.transaction() as conn:
        locked = await withdrawals.lock(conn, withdrawal.withdrawal_id)
        if locked.status == "START":
            await withdrawals.update(
                conn,
                locked.withdrawal_id,
                payout_id=locked.payout_id,
                reason=PLATFORM_UNAVAILABLE,
                now=now,
                check_at=now + CHECK_AGAIN,
            )


async def _apply_payout(services: Services, conn: Connection, withdrawal: Withdrawal, payout: Payout) -> None:
    """Store the state of a payout as read from the platform. `conn` is in a transaction."""
    item, now = payout.item, services.clock.now(withdrawal.app_id)
    status = "" if item is None else item.transaction_status
    if item is not None and status == "SUCCESS":
        await _apply_result(
            services, conn, withdrawal, payout_id=payout.id, reason="", paid_at=item.time_processed or now
        )
    elif status in _FAILED_ITEMS or payout.status in _FAILED_BATCHES:
        error = (item.error if item is not None else "") or (status if status in _FAILED_ITEMS else payout.status)
        await _apply_result(services, conn, withdrawal, payout_id=payout.id, reason=reason_of(error), paid_at=None)
    else:
        locked = await withdrawals.lock(conn, withdrawal.withdrawal_id)
        if locked.status == "START":
            check_at = now + (CHECK_AGAIN if locked.payout_id else _CHECK_FIRST)
            await withdrawals.update(
                conn, locked.withdrawal_id, payout_id=payout.id, reason="", now=now, check_at=check_at
            )
            await withdrawals.mark_unknown(conn, locked.withdrawal_id, since=None)


async def _apply_result(
    services: Services,
    conn: Connection,
    withdrawal: Withdrawal,
    *,
    payout_id: str,
    reason: str,
    paid_at: datetime | None,
) -> None:
    """End a withdrawal. If it has ended before, report a result that differs.

    A paid withdrawal that is returned stays paid, and gets an entry for the return. A result that differs from the
    settlement of an operator changes nothing.
    """
    now = services.clock.now(withdrawal.app_id)
    locked = await withdrawals.lock(conn, withdrawal.withdrawal_id)
    bound, detail = _bound(locked), f"{locked.money}, {payout_id}"
    if locked.status == "START":
        await end_withdrawal(conn, locked, payout_id=payout_id, reason=reason, paid_at=paid_at, now=now)
    elif locked.settled_at is not None:
        differs = (locked.status == "SUCCESS") != (paid_at is not None)
        detail = f"{detail}: {reason or 'paid'}"
        if differs and await _report_mismatch(
            services, conn, locked, kind="payout_settled_otherwise", detail=detail
        ):
            bound.error("withdrawal.settled_otherwise", payout_id=payout_id, reason=reason)
    elif locked.status == "SUCCESS" and paid_at is None:
        if await withdrawals.enter_return(conn, locked.withdrawal_id, now=now):
            RETURNED.inc()
            await _report_mismatch(services, conn, locked, kind="payout_returned", detail=f"{detail}: {reason}")
            bound.error("withdrawal.returned", reason=reason)
    elif (
        locked.status == "FAILED"
        and paid_at is not None
        and await _report_mismatch(services, conn, locked, kind="payout_paid_after_failure", detail=detail)
    ):
        bound.error("withdrawal.paid_after_failure", payout_id=payout_id)


async def _report_mismatch(
    services: Services, conn: Connection, locked: Withdrawal, *, kind: MismatchKind, detail: str
) -> bool:
    """Report a mismatch to operators. Return whether it is new. `conn` has locked the withdrawal."""
    return await mismatches.add_once(
        conn, locked.app_id,
        platform=PAYOUTS.name, kind=kind, subject=locked.withdrawal_id, detail=detail,
        now=services.clock.now(locked.app_id),
    )  # fmt: skip


def _bound(withdrawal: Withdrawal) -> Any:
    return log.bind(app_id=withdrawal.app_id, withdrawal_id=withdrawal.withdrawal_id)
