"""Rows of identities: accounts of users at sign-in platforms, unique within an app (§2.2, §2.4)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

import structlog

from storage.accounts import users
from storage.accounts.users import COLUMNS, User
from storage.postgres.connection import Row
from storage.postgres.database import Connection
from storage.secrets import DecryptionFailed, Keyring

log = structlog.get_logger()

SECRET_IDS = ("device", "anonymity")
"""Platforms whose ids are secrets of the client: whoever knows one can log in."""


@dataclass(frozen=True, slots=True)
class Identity:
    app_id: str
    platform: str
    social_id: str


@dataclass(frozen=True, slots=True)
class Details:
    """A platform's report about an identity. Values that it omits are empty. The tokens are not encrypted."""

    openid: str = ""
    xid: str = ""
    access_token: str = ""
    refresh_token: str = ""
    expiration_date: int = 0
    """Unix seconds at which `access_token` expires, or 0."""
    profile: dict[str, Any] | None = None


class LinkedIdentity(NamedTuple):
    """An identity of a user. Its tokens are encrypted."""

    platform: str
    social_id: str
    openid: str = ""
    xid: str = ""
    access_token: str = ""
    refresh_token: str = ""
    expiration_date: int = 0
    profile: dict[str, Any] | None = None
    trust: Literal["proven", "client"] = "client"
    """`client`: only the client claims that the identity is the user's."""


class UserAccount(NamedTuple):
    """A user with all identities, the oldest first."""

    user: User
    identities: tuple[LinkedIdentity, ...]
    pending_email: str = ""
    """An address that becomes the user's once it is proven."""


_USER_OF = "select uid from identities where app_id = $1 and platform = $2 and social_id = $3"


async def user_of(conn: Connection, identity: Identity) -> str | None:
    uid: str | None = await conn.fetchval(_USER_OF, identity.app_id, identity.platform, identity.social_id)
    return uid


LINKED = """
(select coalesce(jsonb_agg(jsonb_build_object(
    'platform', i.platform, 'social_id', i.social_id, 'openid', i.openid, 'xid', i.xid,
    'access_token', i.access_token, 'refresh_token', i.refresh_token, 'expiration_date', i.expiration_date,
    'profile', i.profile, 'trust', i.trust) order by i.create_time, i.platform), '[]')
 from identities i where i.app_id = users.app_id and i.uid = users.uid) as identities,
coalesce((select address from pending_emails p where p.app_id = users.app_id and p.uid = users.uid), '') as pending
"""
"""Columns of a statement that selects from `users`: the user's identities and pending address."""

_FIND_ACCOUNT = f"""
select {COLUMNS}, {LINKED} from users where app_id = $1 and uid = $2 and status <> 'deactivated'
"""


async def find_account(conn: Connection, app_id: str, uid: str) -> UserAccount | None:
    """Return a user with all identities, or `None` if the user does not exist or is deactivated."""
    return account_of(await conn.fetchrow(_FIND_ACCOUNT, app_id, uid))


def account_of(row: Row | None) -> UserAccount | None:
    """Return the account in a row with the columns of a user and `LINKED`."""
    if row is None:
        return None
    *user, linked, pending_email = row.values()
    return UserAccount(User(*user), tuple(LinkedIdentity(**identity) for identity in linked), pending_email)


_STORE = """
update identities set openid = $4, xid = $5, trust = $6,
    access_token = case when $7 = '' then access_token else $7 end,
    expiration_date = case when $7 = '' then expiration_date else $9 end,
    refresh_token = case when $8 = '' then refresh_token else $8 end,
    profile = coalesce($10, profile)
where app_id = $1 and platform = $2 and social_id = $3
"""


async def store_details(
    conn: Connection, identity: Identity, *, details: Details, keyring: Keyring, proven: bool
) -> None:
    """Store a platform's report about an identity. Stored tokens and profiles are kept if it contains none."""
    await conn.execute(
        _STORE,
        identity.app_id,
        identity.platform,
        identity.social_id,
        details.openid,
        details.xid,
        "proven" if proven else "client",
        _encrypted(keyring, identity, "access_token", details.access_token),
        _encrypted(keyring, identity, "refresh_token", details.refresh_token),
        details.expiration_date,
        details.profile,
    )


def details_of(linked: LinkedIdentity, app_id: str, *, keyring: Keyring) -> Details:
    """Return the stored details of an identity. A token that no master key decrypts is omitted."""
    identity = Identity(app_id, linked.platform, linked.social_id)
    stored = linked._asdict()
    del stored["platform"], stored["social_id"], stored["trust"]
    for name in ("access_token", "refresh_token"):
        stored[name] = _decrypted(keyring, identity, name, stored[name])
    return Details(**stored)


def _encrypted(keyring: Keyring, identity: Identity, name: str, token: str) -> str:
    return keyring.encrypt(token, aad=_aad(identity, name)) if token else ""


def _decrypted(keyring: Keyring, identity: Identity, name: str, encrypted: str) -> str:
    try:
        return keyring.decrypt(encrypted, aad=_aad(identity, name)) if encrypted else ""
    except DecryptionFailed as error:
        log.warning("identity.token_not_decrypted", platform=identity.platform, token=name, error=str(error))
        return ""


def _aad(identity: Identity, name: str) -> str:
    return f"identities/{identity.app_id}/{identity.platform}/{identity.social_id}/{name}"


_ADD = """
insert into identities (app_id, platform, social_id, uid, create_time, trust) values ($1, $2, $3, $4, $5, $6)
on conflict do nothing returning uid
"""
_HAS_PLATFORM = "select exists (select from identities where app_id = $1 and uid = $2 and platform = $3)"

Link = Literal["linked", "platform_taken", "identity_taken"]


async def link(conn: Connection, identity: Identity, *, uid: str, now: datetime, proven: bool) -> Link:
    """Give an identity to a user. `conn` is in a transaction that has locked the user.

    `platform_taken`: the user already has this or another identity of the platform. `identity_taken`: the identity
    belongs to another user.
    """
    app_id, platform, social_id = identity.app_id, identity.platform, identity.social_id
    trust = "proven" if proven else "client"
    if await conn.fetchval(_ADD, app_id, platform, social_id, uid, now, trust) is not None:
        return "linked"
    if await user_of(conn, identity) not in {None, uid}:
        return "identity_taken"
    return "platform_taken" if await conn.fetchval(_HAS_PLATFORM, app_id, uid, platform) else "identity_taken"


_DELETE = """
delete from identities where app_id = $1 and platform = $2 and social_id = $3 and uid = $4 returning true
"""


async def unlink(conn: Connection, identity: Identity, *, uid: str) -> bool:
    """Remove an identity from a user. Return false if the user does not have it.

    `conn` is in a transaction that has locked the account. The caller ensures that the user can still log in, and
    ends the sessions of the identity.
    """
    key = (identity.app_id, identity.platform, identity.social_id, uid)
    return await conn.fetchval(_DELETE, *key) is not None


_DELETE_NEWEST = """
delete from identities i using users u
where i.app_id = $1 and i.uid = $2 and i.platform <> 'email' and i.create_time > $3
and u.app_id = i.app_id and u.uid = i.uid and i.create_time > u.create_time
returning i.platform
"""


async def unlink_newest(conn: Connection, app_id: str, uid: str, *, since: datetime) -> list[str]:
    """Remove the identities that a user bound after `since`, except the address and the first identity.

    Return their platforms. `conn` is in a transaction that has locked the user, who can log in with the address.
    """
    return [row["platform"] for row in await conn.fetch(_DELETE_NEWEST, app_id, uid, since)]


async def lock_account(conn: Connection, app_id: str, uid: str) -> UserAccount | None:
    """Return a user with all identities, or `None` if the user does not exist or is deactivated.

    Neither changes until the transaction of `conn` ends. The identities are read after the user is locked, because
    a statement does not see rows that were committed while it waited.
    """
    if await users.lock(conn, app_id, uid) is None:
        return None
    return await find_account(conn, app_id, uid)


_OF_USER = """
select platform, social_id, openid, xid, access_token, refresh_token, expiration_date, profile, trust
from identities where app_id = $1 and platform = $2 and social_id = $3 and ($4::text is null or uid = $4)
"""


async def find(conn: Connection, identity: Identity, *, uid: str | None = None) -> LinkedIdentity | None:
    """Return a stored identity; with `uid`, only if it belongs to that user."""
    row = await conn.fetchrow(_OF_USER, identity.app_id, identity.platform, identity.social_id, uid)
    return None if row is None else LinkedIdentity(**row)
