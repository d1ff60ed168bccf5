"""The sessions of a user as the user sees them: with an id that is no secret, and where they were made."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from storage.postgres.database import Connection
from streams.wire.errors import ItemNotFound, listed
from streams.wire.owned import Owned

_ID_CHARACTERS = 32
"""A session is named by the beginning of its digest, from which its token cannot be derived."""


class SessionNotFound(ItemNotFound):
    """No session of the user has this `session_id`."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {listed([session_id])} does not exist")


SESSION = Owned(SessionNotFound)


@dataclass(frozen=True, slots=True)
class ListedSession:
    digest: str
    platform: str
    """The platform of the identity with which it was made."""
    create_time: datetime
    last_seen: datetime
    expire_time: datetime
    client_os: str
    user_agent: str
    address: str

    @property
    def session_id(self) -> str:
        return self.digest[:_ID_CHARACTERS]


_LIST = """
select digest, platform, create_time, last_seen, expire_time, client_os, user_agent, address
from sessions
where app_id = $1 and uid = $2 and revoke_time is null and expire_time > $3 and last_seen > $4
and ($5::text is null or left(digest, 32) = $5)
order by create_time desc, digest
"""


async def listed_sessions(
    conn: Connection, app_id: str, uid: str, *, now: datetime, sliding_s: float, session_id: str | None = None
) -> list[ListedSession]:
    """Return the sessions of a user that are accepted, the newest first; with `session_id`, only that one."""
    oldest = now - timedelta(seconds=sliding_s)
    return [ListedSession(**row) for row in await conn.fetch(_LIST, app_id, uid, now, oldest, session_id)]
