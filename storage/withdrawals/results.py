"""Ends withdrawals, with the result that the platform reports or an operator has settled."""

from datetime import datetime

import structlog
from prometheus_client import Counter

from storage.postgres.database import Connection
from storage.withdrawals import withdrawals
from storage.withdrawals.withdrawals import Withdrawal

log = structlog.get_logger()

NOT_PAID = "withdraw.not_paid"
"""The `reason` of a withdrawal that an operator has settled as failed."""
ENDED = Counter("parley_withdrawals", "Withdrawals that have ended, by outcome", ["outcome"])


async def end_withdrawal(
    conn: Connection,
    locked: Withdrawal,
    *,
    payout_id: str,
    reason: str,
    paid_at: datetime | None,
    now: datetime,
    by_operator: bool = False,
) -> None:
    """End an open withdrawal, which `conn` has locked: as paid if there is a `paid_at`, otherwise as failed."""
    await withdrawals.end(
        conn,
        locked.withdrawal_id,
        payout_id=payout_id,
        reason=reason,
        paid_at=paid_at,
        now=now,
        by_operator=by_operator,
    )
    outcome = "failed" if paid_at is None else "paid"
    ENDED.labels(outcome).inc()
    bound = log.bind(app_id=locked.app_id, withdrawal_id=locked.withdrawal_id)
    bound.info(f"withdrawal.{outcome}", reason=reason)
