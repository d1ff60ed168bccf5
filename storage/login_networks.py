"""Rows of the networks from which each user has logged in by password. They stay usable while others guess it."""

from datetime import datetime

from storage.postgres import Connection

_IS_KNOWN = "select exists (select from login_networks where app_id = $1 and uid = $2 and network = $3)"


async def is_known(conn: Connection, app_id: str, uid: str, *, network: str) -> bool:
    """Return whether the user has logged in from `network` within the last half year."""
    known: bool = await conn.fetchval(_IS_KNOWN, app_id, uid, network)
    return known


_REMEMBER = """
with remembered as (
    insert into login_networks (app_id, uid, network, last_used_at) values ($1, $2, $3, $4)
    on conflict (app_id, uid, network) do update set last_used_at = excluded.last_used_at
    where login_networks.last_used_at < excluded.last_used_at - interval '1 day'
)
delete from login_networks where app_id = $1 and uid = $2 and last_used_at < $4 - interval '180 days'
    and network <> $3
"""


async def remember(conn: Connection, app_id: str, uid: str, *, network: str, now: datetime) -> None:
    """Remember that the user has logged in from `network`, and forget what is older than half a year."""
    await conn.execute(_REMEMBER, app_id, uid, network, now)
