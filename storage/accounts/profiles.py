"""Profiles that sign-in platforms report, which are shown with identities (§2.5)."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from storage.accounts.identities import Identity
from storage.jobs.jobs import Job, enqueue
from storage.postgres.database import Connection


class FetchProfile(Job):
    """Fetch the profile of an identity from its platform."""

    task: ClassVar[str] = "fetch_profile"
    attempts: ClassVar[int] = 6
    timeout_s: ClassVar[float] = 60
    app_id: str
    platform: str
    social_id: str


class StoredProfile(NamedTuple):
    platform: str
    social_id: str
    profile: dict[str, Any]


async def fetch_later(conn: Connection, identity: Identity) -> None:
    """Store the job that fetches the profile of an identity, unless one is already queued."""
    key = f"profile/{identity.app_id}/{identity.platform}/{identity.social_id}"
    job = FetchProfile(app_id=identity.app_id, platform=identity.platform, social_id=identity.social_id)
    await enqueue(conn, job, key=key)


async def store(conn: Connection, identity: Identity, *, profile: dict[str, Any]) -> None:
    """Store the profile of an identity, if it still exists."""
    await conn.execute(
        "update identities set profile = $4 where app_id = $1 and platform = $2 and social_id = $3",
        identity.app_id,
        identity.platform,
        identity.social_id,
        profile,
    )


_OF_USERS = """
select users.uid, i.platform, i.social_id, i.profile from users
left join identities i on i.app_id = users.app_id and i.uid = users.uid and i.profile is not null
where users.app_id = $1 and users.uid = any($2) and users.status <> 'deactivated'
order by i.create_time, i.platform
"""


async def of_users(conn: Connection, app_id: str, *, uids: Sequence[str]) -> dict[str, list[StoredProfile]]:
    """Return the profiles of the users in `uids` that exist, by user."""
    found: dict[str, list[StoredProfile]] = {}
    for uid, platform, social_id, profile in await conn.fetch(_OF_USERS, app_id, uids):
        stored = found.setdefault(uid, [])
        if profile is not None:
            stored.append(StoredProfile(platform, social_id, profile))
    return found
