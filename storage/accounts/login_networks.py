"""Rows of the networks from which each user has logged in with a proof.

Logins from these networks are accepted while somebody else guesses the user's password or codes.
"""

from datetime import datetime, timedelta

from storage.postgres.database import Connection

KEEP = timedelta(days=180)
"""How long a network counts as one of the user's after the last login from it."""
MOST = 50
"""How many networks of a user are kept, the last used ones."""

_IS_KNOWN = "select exists (select from login_networks where app_id = $1 and uid = $2 and network = $3)"


async def is_known(conn: Connection, app_id: str, uid: str, *, network: str) -> bool:
    """Return whether the user has logged in from `network`."""
    known: bool = await conn.fetchval(_IS_KNOWN, app_id, uid, network)
    return known


_OF_USER = "select network from login_networks where app_id = $1 and uid = $2"


async def of_user(conn: Connection, app_id: str, uid: str) -> frozenset[str]:
    """Return the networks from which the user has logged in."""
    return frozenset(row["network"] for row in await conn.fetch(_OF_USER, app_id, uid))


_REMEMBER = f"""
with remembered as (
    insert into login_networks (app_id, uid, network, last_used_at) values ($1, $2, $3, $4)
    on conflict (app_id, uid, network) do update set last_used_at = excluded.last_used_at
    where login_networks.last_used_at < excluded.last_used_at - interval '1 day'
    returning true
)
delete from login_networks where app_id = $1 and uid = $2 and exists (select from remembered) and network in (
    select network from login_networks where app_id = $1 and uid = $2 and network <> $3
    order by last_used_at desc, network offset {MOST - 1})
"""


async def remember(conn: Connection, app_id: str, uid: str, *, network: str, now: datetime) -> None:
    """Remember that the user has logged in from `network`. `conn` is in a transaction that has locked the user."""
    await conn.execute(_REMEMBER, app_id, uid, network, now)


_FORGET = "delete from login_networks where app_id = $1 and uid = $2"


async def forget(conn: Connection, app_id: str, uid: str) -> None:
    """Forget the networks of a user, because somebody else may have logged in."""
    await conn.execute(_FORGET, app_id, uid)
