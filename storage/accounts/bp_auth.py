"""Tokens that log an identity in without a new authorization, once and for a short time (§2.6)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from storage.accounts.identities import Identity
from storage.postgres.database import Connection
from storage.tokens import digest, is_token, new_token

PREFIX = "ba_"


@dataclass(frozen=True, slots=True)
class BpAuth:
    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class StoredBpAuth:
    """The row of a token, which may be used or expired."""

    identity: Identity
    proven: bool
    """False if only the client claims the identity."""
    expires_at: datetime
    used_at: datetime | None


_ISSUE = """
insert into bp_auth_tokens (digest, app_id, platform, social_id, trust, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6, $7)
"""


async def issue(conn: Connection, identity: Identity, *, proven: bool, now: datetime, within_s: float) -> BpAuth:
    """Create a token for an identity, which may have no user yet. `proven`: it is not only claimed."""
    made = BpAuth(new_token(PREFIX), now + timedelta(seconds=within_s))
    key = (identity.app_id, identity.platform, identity.social_id)
    await conn.execute(_ISSUE, digest(made.token), *key, "proven" if proven else "client", now, made.expires_at)
    return made


_FIND = """
select app_id, platform, social_id, trust = 'proven', expires_at, used_at from bp_auth_tokens where digest = $1
"""


async def find(conn: Connection, token: str) -> StoredBpAuth | None:
    """Return the row of a token of any app."""
    if not is_token(token, PREFIX):
        return None
    row = await conn.fetchrow(_FIND, digest(token))
    if row is None:
        return None
    *identity, proven, expires_at, used_at = row
    return StoredBpAuth(Identity(*identity), proven, expires_at, used_at)


_USE = """
update bp_auth_tokens set used_at = $3
where app_id = $1 and digest = $2 and used_at is null and expires_at > $3 returning true
"""


async def use_token(conn: Connection, app_id: str, *, token: str, now: datetime) -> bool:
    """Consume a token. Only one of concurrent calls returns true. `conn` is in the transaction of the login."""
    return bool(await conn.fetchval(_USE, app_id, digest(token), now))


_REVOKE = """
delete from bp_auth_tokens token using identities i
where i.app_id = $1 and i.uid = $2
and token.app_id = i.app_id and token.platform = i.platform and token.social_id = i.social_id
"""


async def revoke(conn: Connection, app_id: str, uid: str) -> None:
    """Delete the tokens of all identities of a user."""
    await conn.execute(_REVOKE, app_id, uid)


_REVOKE_OF_SESSION = """
delete from bp_auth_tokens token using sessions s
where s.app_id = $1 and s.digest = $2
and token.app_id = s.app_id and token.platform = s.platform and token.social_id = s.social_id
"""


async def revoke_of_session(conn: Connection, app_id: str, *, session_id: str) -> None:
    """Delete the tokens of the identity that logged in to a session. `session_id` is the session's digest."""
    await conn.execute(_REVOKE_OF_SESSION, app_id, session_id)


async def revoke_for(conn: Connection, identity: Identity) -> None:
    """Delete the tokens of one identity."""
    await conn.execute(
        "delete from bp_auth_tokens where app_id = $1 and platform = $2 and social_id = $3",
        identity.app_id,
        identity.platform,
        identity.social_id,
    )
