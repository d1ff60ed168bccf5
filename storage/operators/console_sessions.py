"""Sessions of operators in the console, and the authenticators that they sign in with.

A session ends after an hour without use, twelve hours after it began, and when its operator is removed, expires, or
gets another role or token. Each call reads it from PostgreSQL, so that its end takes effect in all processes
immediately.
"""

from contextlib import suppress
from dataclasses import dataclass

from storage.operators import totp
from storage.operators.operators import Operator, operator_of
from storage.postgres.connection import one
from storage.postgres.database import Connection, Database
from storage.secrets import DecryptionFailed, Keyring
from storage.tokens import digest, is_token, new_token
from streams.wire.errors import ConfigInvalid, StoreError

PREFIX = "parley_cs_"
MAX_S = 12 * 3600
"""Seconds after which a session ends."""
_LIVE = f"s.used_at > now() - interval '1 hour' and s.created_at > now() - interval '{MAX_S} s'"
_FIND = f"""
select o.operator_id, o.name, o.role, o.created_at, o.expires_at, o.last_used_at,
    coalesce(o.expires_at <= now(), false) as expired, s.used_at < now() - interval '1 minute' as use_is_due
from operator_sessions s join operators o using (operator_id) where s.digest = $1 and {_LIVE}
"""
_TOUCH = "update operator_sessions set used_at = now() where digest = $1"
_OPEN = "insert into operator_sessions (digest, operator_id) values ($1, $2)"
_DELETE_ENDED = f"""
delete from operator_sessions where digest in (
    select s.digest from operator_sessions s where s.created_at <= now() - interval '{MAX_S} s'
    limit 100 for update skip locked)
"""
_AUTHENTICATOR = """
select totp_secret, totp_confirmed, totp_step, extract(epoch from now())::float8 as now_s
from operators where operator_id = $1 for update
"""
_SET_SECRET = "update operators set totp_secret = $2 where operator_id = $1"  # noqa: S105 - no password
_USE_CODE = "update operators set totp_step = $2, totp_confirmed = true where operator_id = $1"


@dataclass(frozen=True, slots=True)
class Authenticator:
    """The authenticator of an operator, whose row is locked."""

    secret: str
    confirmed: bool
    """Whether one of its codes was right before. Otherwise, it still has to be set up."""
    last_step: int
    now_s: float

    def step_of(self, code: str) -> int | None:
        """Return the time step of a right code that was not used before, or `None`."""
        return totp.matching_step(self.secret, code, now_s=self.now_s, after=self.last_step)


async def find(database: Database, token: str, *, is_use: bool) -> Operator | None:
    """Return the operator of a session, even if it has expired, or `None` if there is no such session.

    `is_use`: the call keeps the session from ending for lack of use.
    """
    if not is_token(token, PREFIX):
        return None
    async with database.connection() as conn:
        row = await conn.fetchrow(_FIND, digest(token))
    if row is None:
        return None
    if is_use and row["use_is_due"]:
        with suppress(StoreError):  # A database that cannot be written to must not sign operators out.
            async with database.connection() as conn:
                await conn.execute(_TOUCH, digest(token))
    return operator_of(row)


async def begin(conn: Connection, operator_id: str) -> str:
    """Begin a session and return its token. Deletes some ended sessions."""
    await conn.execute(_DELETE_ENDED)
    token = new_token(PREFIX)
    await conn.execute(_OPEN, digest(token), operator_id)
    return token


async def end(conn: Connection, token: str) -> None:
    """End a session, if there is one with this token."""
    await conn.execute("delete from operator_sessions where digest = $1", digest(token))


async def authenticator(conn: Connection, operator_id: str, *, keyring: Keyring) -> Authenticator:
    """Return the authenticator of an operator and lock the operator's row. Makes a secret if there is none."""
    row = one(await conn.fetchrow(_AUTHENTICATOR, operator_id))
    if row["totp_secret"] is None:
        secret = totp.new_secret()
        await conn.execute(_SET_SECRET, operator_id, keyring.encrypt(secret, aad=_aad(operator_id)))
    else:
        try:
            secret = keyring.decrypt(row["totp_secret"], aad=_aad(operator_id))
        except DecryptionFailed:
            raise ConfigInvalid(
                "the operator's authenticator cannot be decrypted: rotate the operator's token to set up a new one"
            ) from None
    return Authenticator(secret, row["totp_confirmed"], row["totp_step"], row["now_s"])


async def use_code(conn: Connection, operator_id: str, *, step: int) -> None:
    """Remember that the code of a time step was used. The operator's row is locked."""
    await conn.execute(_USE_CODE, operator_id, step)


def _aad(operator_id: str) -> str:
    return f"operators/{operator_id}/totp"
