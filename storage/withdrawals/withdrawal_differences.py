"""Withdrawals that differ from their entries."""

from storage.differences import MAX, Difference
from storage.postgres.database import Connection

_DIFFERENCES = """
select app_id, uid, withdrawal_id, status, expected, is_open from (
    select w.*, check_at is not null as is_open, (
        select case
            when bool_or(e.kind = 'reserve') is not true then ''
            when bool_or((e.app_id, e.uid, e.config, e.amount, e.currency)
                is distinct from (w.app_id, w.uid, w.config, w.amount, w.currency)) then ''
            when bool_or(e.kind = 'pay') then 'SUCCESS'
            when bool_or(e.kind = 'return') then ''
            when bool_or(e.kind = 'void') then 'FAILED'
            else 'START' end
        from withdrawal_entries e where e.withdrawal_id = w.withdrawal_id) as expected
    from withdrawals w) compared
where status <> expected or is_open <> (status = 'START') order by withdrawal_id limit $1
"""


async def find_differences(conn: Connection, *, limit: int = MAX) -> list[Difference]:
    """Compare all withdrawals with their entries, and return at most `limit` that differ."""
    return [
        Difference(
            row["app_id"],
            row["uid"],
            f"withdrawal {row['withdrawal_id']}",
            _problem(row["status"], row["expected"], is_open=row["is_open"]),
        )
        for row in await conn.fetch(_DIFFERENCES, limit)
    ]


def _problem(status: str, expected: str, *, is_open: bool) -> str:
    """Return how a withdrawal differs. `expected`: the state that follows from its entries. Empty: none does."""
    if not expected:
        return "does not match its entries"
    if status != expected:
        return f"status is {status}, should be {expected}"
    return f"has ended as {status}, but is read back" if is_open else "is in progress, but never read back"
