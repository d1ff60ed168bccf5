"""Whether the master key of a process is the one with which the secrets of the deployment are encrypted."""

from typing import Any

import structlog

from storage.configs import rows
from storage.postgres.causes import forbids_writing
from storage.postgres.database import Connection, Database
from storage.secrets import DecryptionFailed, Keyring
from streams.wire.errors import StoreError

log = structlog.get_logger()

_AAD = "master_key"
_READ = "select encrypted from master_key"
_STORE = """
insert into master_key (encrypted) values ($1)
on conflict (only_row) do update set encrypted = master_key.encrypted
returning encrypted
"""
_REPLACE = "update master_key set encrypted = $1 where encrypted = $2"
_ACCEPT = """
insert into master_key (encrypted) values ($1)
on conflict (only_row) do update set encrypted = excluded.encrypted
"""

FEW_OUTSIDE_OF_CONFIGS = """
(select totp_secret as encrypted from operators where totp_secret is not null order by created_at desc limit 10)
union all
(select token from (select access_token, refresh_token from identities order by uid desc limit 1000) as newest,
    lateral (values (access_token), (refresh_token)) as tokens (token) where token <> '' limit 10)
union all
(select args ->> 'sealed' from (select args from procrastinate_jobs order by id desc limit 1000) as newest
    where args ? 'sealed' limit 10)
"""
"""Some of the newest ciphertexts of authenticators, users' tokens and waiting messages.

The limits are for tables of any size: ids begin with the time, and indexes begin with them. The tokens of
deactivated users (`revocations`) have no such index. They are deleted once they are revoked, so they are left out.
"""


class WrongMasterKey(Exception):
    """Raised when secrets of the deployment are encrypted with a master key that this process does not have."""


async def check_master_key(database: Database, keyring: Keyring, *, replaces: bool) -> None:
    """Raise `WrongMasterKey` unless `keyring` has the key of this deployment.

    PostgreSQL has a text that is encrypted with it. The first process stores that text, unless it finds secrets of
    other keys only. When a server or a worker (`replaces`) starts with another first key, the text is encrypted
    again, so that the old key is not needed for it. While PostgreSQL cannot be written, as during a failover, both
    are left to a later start.
    """
    async with database.connection() as conn:
        encrypted = await conn.fetchval(_READ)
        if encrypted is None:
            await _refuse_other_secrets(conn, keyring)
    if encrypted is None:
        encrypted = await _write(database, _STORE, _new(keyring))
    if encrypted is None:
        return
    if not _decrypts(keyring, encrypted):
        raise WrongMasterKey
    if replaces and not keyring.is_by_first(encrypted):
        await _write(database, _REPLACE, _new(keyring), encrypted)


async def is_ahead(conn: Connection, keyring: Keyring) -> bool:
    """Return whether no server or worker has started with the first key of `keyring` as its first one."""
    encrypted = await conn.fetchval(_READ)
    return encrypted is not None and not keyring.is_by_first(encrypted)


async def accept_master_key(conn: Connection, keyring: Keyring) -> None:
    """Make the first key that of the deployment, although the one before is lost."""
    await conn.execute(_ACCEPT, _new(keyring))


async def _write(database: Database, statement: str, *args: str) -> Any:
    """Execute a statement and return its value, or `None` if PostgreSQL can be read but not written."""
    try:
        async with database.connection() as conn:
            return await conn.fetchval(statement, *args)
    except StoreError as error:
        if not (isinstance(error.__cause__, Exception) and forbids_writing(error.__cause__)):
            raise
        log.warning("master_key.not_stored", cause=error.what)
        return None


def _new(keyring: Keyring) -> str:
    return keyring.encrypt("", aad=_AAD)


def _decrypts(keyring: Keyring, encrypted: str) -> bool:
    try:
        keyring.decrypt(encrypted, aad=_AAD)
    except DecryptionFailed:
        return False
    return True


async def _refuse_other_secrets(conn: Connection, keyring: Keyring) -> None:
    """Raise `WrongMasterKey` if secrets were read and `keyring` has the key of none of them."""
    ciphertexts = await rows.ciphertexts(conn)
    ciphertexts += [row["encrypted"] for row in await conn.fetch(FEW_OUTSIDE_OF_CONFIGS)]
    if ciphertexts and not any(keyring.has_key_of(encrypted) for encrypted in ciphertexts):
        raise WrongMasterKey
