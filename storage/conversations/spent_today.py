"""What calls to vendors have cost since a time, by app, for the overview of operators."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from storage.postgres.database import Connection

# Ids of streams begin with the time in milliseconds, so the primary key serves as an index.
_SPENT = """
select app_id, spent from unnest($1::text[]) as apps (app_id), lateral (
    select sum(price) as spent from attempts where attempts.app_id = apps.app_id and stream_id >= $2
) prices where spent > 0
"""


async def spent_since(conn: Connection, apps: Sequence[str], *, since: datetime) -> dict[str, Decimal]:
    """Return the prices of all attempts of the streams that began since a time, in the currency of each app."""
    first = f"{int(since.timestamp() * 1000):012x}"
    return dict([*row] for row in await conn.fetch(_SPENT, apps, first))
