"""The list of withdrawals for operators, by state."""

from collections.abc import Mapping
from typing import Literal

from storage.postgres.database import Connection
from storage.postgres.directions import directed
from storage.withdrawals.withdrawals import COLUMNS, Withdrawal

State = Literal["in_progress", "unknown", "paid", "failed"]
"""`unknown`: in progress, but the platform no longer knows the result."""

_CONDITIONS: Mapping[State | None, str] = {
    None: "true",
    "in_progress": "status = 'START' and unknown_at is null",
    "unknown": "unknown_at is not null",
    "paid": "status = 'SUCCESS'",
    "failed": "status = 'FAILED'",
}
"""The conditions in SQL. Each is part of its own statement, so that pages of unknown ones use their index."""


def state_of(withdrawal: Withdrawal) -> State:
    """Return the state of a withdrawal for operators."""
    match withdrawal.status:
        case "SUCCESS":
            return "paid"
        case "FAILED":
            return "failed"
    return "in_progress" if withdrawal.unknown_at is None else "unknown"


async def page(
    conn: Connection,
    *,
    of_app: str | None,
    state: State | None,
    oldest_first: bool = False,
    before: str | None,
    size: int,
) -> list[Withdrawal]:
    """Return withdrawals of an app, or of all apps, the newest first unless `oldest_first`."""
    statement = f"""
    select {COLUMNS} from withdrawals
    where {_CONDITIONS[state]} and ($1::text is null or app_id = $1)
        and ($2::text is null or withdrawal_id {{compare}} $2)
    order by withdrawal_id {{order}} limit $3
    """
    return [
        Withdrawal(**row)
        for row in await conn.fetch(directed(statement, oldest_first=oldest_first), of_app, before, size)
    ]
