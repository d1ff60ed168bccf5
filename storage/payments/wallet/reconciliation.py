"""The jobs that read orders and subscriptions back from the wallet platform, and which of these they read first."""

from datetime import datetime
from typing import ClassVar

from storage.jobs.jobs import Job
from storage.postgres.connection import Row
from storage.postgres.database import Connection


class ReconcileWallets(Job):
    """Store a `ReconcileWallet` for each config of kind `walletpay`."""

    task: ClassVar[str] = "reconcile_wallets"


class ReconcileWallet(Job):
    """Read back the orders and subscriptions of one config that are expected to change."""

    task: ClassVar[str] = "reconcile_wallet"
    app_id: str
    config: str


_CLAIM = """
update %(table)s set check_at = $4 where row_id in (
    select row_id from %(table)s
    where app_id = $1 and config = $2 and check_at <= $3 and status %(operator)s (%(settled)s)
    order by check_at limit $5 for update skip locked)
returning %(columns)s
"""


def claims_of(table: str, columns: str, *, settled: str) -> tuple[str, str]:
    """Return the statements that claim due rows: those that are expected to change, and then the others.

    `settled` has the states of the others in SQL, separated by commas. They are only read once a day, so they wait.
    """
    parts = {"table": table, "columns": columns, "settled": settled}
    return _CLAIM % {**parts, "operator": "not in"}, _CLAIM % {**parts, "operator": "in"}


async def claim_due(
    conn: Connection,
    app_id: str,
    *,
    claims: tuple[str, str],
    config: str,
    now: datetime,
    again_at: datetime,
    limit: int,
) -> list[Row]:
    """Return rows of a config that are to be read back, the most overdue first, and postpone them to `again_at`."""
    claimed: list[Row] = []
    for claim in claims:
        if len(claimed) < limit:
            claimed += await conn.fetch(claim, app_id, config, now, again_at, limit - len(claimed))
    return claimed
