"""Rows of identities: accounts of users at sign-in platforms, unique within an app (§2.2)."""

from dataclasses import dataclass
from datetime import datetime

from storage.postgres import Connection


@dataclass(frozen=True, slots=True)
class Identity:
    app_id: str
    platform: str
    social_id: str


_USER_OF = "select uid from identities where app_id = $1 and platform = $2 and social_id = $3"


async def user_of(conn: Connection, identity: Identity) -> str | None:
    uid: str | None = await conn.fetchval(_USER_OF, identity.app_id, identity.platform, identity.social_id)
    return uid


# A single statement inserts both rows or none. Of two concurrent first logins, the second waits for the first and
# inserts nothing.
_ADD_USER = """
with made as (
    insert into identities (app_id, platform, social_id, uid, create_time) values ($1, $2, $3, $4, $5)
    on conflict do nothing returning uid
)
insert into users (app_id, uid, create_time, last_login) select $1, uid, $5, $5 from made returning uid
"""


async def add_user(conn: Connection, identity: Identity, *, uid: str, now: datetime) -> bool:
    """Insert a user with its first identity. Return false if the identity already belongs to a user."""
    added = await conn.fetchval(_ADD_USER, identity.app_id, identity.platform, identity.social_id, uid, now)
    return added is not None
