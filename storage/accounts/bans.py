"""Bans of users by operators.

A ban is a state of the user's row, as a freeze is: logins lock that row, so none that runs concurrently begins a
session. It holds until its end by the app's clock, without a job that ends it.

A user may be deactivated while banned. So that nobody escapes a ban by this, keyed digests of the user's identities
are kept, and an identity that has one cannot be used for an account until the ban ends.
"""

import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime

from storage.accounts.identities import Identity, LinkedIdentity
from storage.accounts.users import Ban
from storage.postgres.database import Connection
from storage.secrets import Keyring

_PURPOSE = "banned identities"
_HOLDS = "banned_at is not null and (ban_ends_at is null or ban_ends_at > {now})"
_SET = """
update users set banned_at = $3, ban_ends_at = $4, ban_reason = $5
where app_id = $1 and uid = $2 and status <> 'deactivated'
"""


async def put(conn: Connection, app_id: str, uid: str, *, ban: Ban) -> None:
    """Ban a user, or replace the ban. `conn` is in a transaction that has locked the user."""
    await conn.execute(_SET, app_id, uid, *ban)


_LIFT = """
with freed as (delete from banned_identities where app_id = $1 and uid = $2)
update users set banned_at = null, ban_ends_at = null, ban_reason = '' where app_id = $1 and uid = $2
"""


async def lift(conn: Connection, app_id: str, uid: str) -> None:
    """End the ban of a user, who may be deactivated, and free the user's identities."""
    await conn.execute(_LIFT, app_id, uid)


def digests_of(identity: Identity, *, keyring: Keyring) -> list[bytes]:
    """Return the digests that an identity may have been stored with: one for each master key, the current first."""
    text = f"{identity.app_id}\0{identity.platform}\0{identity.social_id}".encode()
    return [hmac.digest(key, text, hashlib.sha256) for key in keyring.derive_all(_PURPOSE)]


_KEEP = f"""
insert into banned_identities (app_id, digest, uid)
select $1, unnest($3::bytea[]), uid from users where app_id = $1 and uid = $2 and {_HOLDS.format(now="$4")}
on conflict (app_id, digest) do update set uid = excluded.uid
"""


async def keep_identities(
    conn: Connection, app_id: str, uid: str, *, linked: Iterable[LinkedIdentity], keyring: Keyring, now: datetime
) -> None:
    """Keep what the identities of a user, who is about to be deactivated, are recognized by, if a ban holds."""
    identities = [Identity(app_id, known.platform, known.social_id) for known in linked]
    kept = [digests_of(identity, keyring=keyring)[0] for identity in identities]
    await conn.execute(_KEEP, app_id, uid, kept, now)


_OF_IDENTITY = f"""
select banned_at, ban_ends_at, ban_reason from banned_identities join users using (app_id, uid)
where app_id = $1 and digest = any($2) and {_HOLDS.format(now="$3")} limit 1
"""


async def of_identity(conn: Connection, identity: Identity, *, keyring: Keyring, now: datetime) -> Ban | None:
    """Return the ban of the deactivated user who had an identity, while it holds."""
    row = await conn.fetchrow(_OF_IDENTITY, identity.app_id, digests_of(identity, keyring=keyring), now)
    return None if row is None else Ban(*row)


_DELETE_EXPIRED = """
delete from banned_identities where (app_id, digest) in (
    select app_id, digest from banned_identities join users using (app_id, uid)
    where app_id = $1 and (banned_at is null or ban_ends_at < $2) limit $3
    for update of banned_identities skip locked)
"""


async def delete_expired(conn: Connection, app_id: str, *, before: datetime, limit: int) -> int:
    """Delete at most `limit` digests of users whose ban has ended before a time. Return their number."""
    status: str = await conn.execute(_DELETE_EXPIRED, app_id, before, limit)
    return int(status.rpartition(" ")[2])
