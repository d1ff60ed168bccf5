"""Jobs that find what no webhook of the wallet platform has reported, and how far its events were compared."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from storage.jobs import Job
from storage.postgres import Connection


class ReconcileWallets(Job):
    """Read back the orders and subscriptions of which something is expected."""

    task: ClassVar[str] = "reconcile_wallets"


class FindMissedWalletEvents(Job):
    """Compare the events of the wallet platform with the inbox, and store those that no webhook has delivered."""

    task: ClassVar[str] = "find_missed_wallet_events"


_READ = "select compared_at from wallet_event_cursors where app_id = $1 and config = $2"
_SET = """
insert into wallet_event_cursors (app_id, config, compared_at) values ($1, $2, $3)
on conflict (app_id, config) do update set compared_at = excluded.compared_at
"""


async def compared_until(conn: Connection, app_id: str, *, config: str) -> datetime | None:
    """Return until when events are compared. `None`: none were yet."""
    until: datetime | None = await conn.fetchval(_READ, app_id, config)
    return until


async def set_compared(conn: Connection, app_id: str, *, config: str, until: datetime) -> None:
    await conn.execute(_SET, app_id, config, until)


_STORED = """
select event_id from webhooks where app_id = $1 and source = $2 and config = $3 and event_id = any($4)
"""


async def stored_events(
    conn: Connection, app_id: str, *, source: str, config: str, event_ids: Sequence[str]
) -> set[str]:
    """Return which of the events are in the inbox."""
    return {row["event_id"] for row in await conn.fetch(_STORED, app_id, source, config, event_ids)}
