"""Rows of identities: who a user is at a platform, unique in an app (§2.2)."""

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


# One statement: either both rows are made or none, and of two first logins at once the later waits
# for the earlier and makes nothing.
_ADD_USER = """
with made as (
    insert into identities (app_id, platform, social_id, uid, create_time) values ($1, $2, $3, $4, $5)
    on conflict do nothing returning uid
)
insert into users (app_id, uid, create_time, last_login) select $1, uid, $5, $5 from made returning uid
"""


async def add_user(conn: Connection, identity: Identity, *, uid: str, now: datetime) -> bool:
    """Make a user with its first identity; false when the identity is somebody's already."""
    made = await conn.fetchval(_ADD_USER, identity.app_id, identity.platform, identity.social_id, uid, now)
    return made is not None
