"""Keyed hashes of email addresses and phone numbers. They find jobs with encrypted content."""

import hashlib
import hmac
from collections.abc import Sequence

from storage.postgres.database import Connection
from storage.secrets import Keyring

_PURPOSE = "recipients of jobs"


def recipient_of(to: str, app_id: str, *, keyring: Keyring) -> str:
    """Return the hash of a normalized address, or of a phone number in E.164."""
    return _hash(keyring.derive(_PURPOSE), app_id, to)


def keys_of(keyring: Keyring) -> list[bytes]:
    """Return the hash key of each master key, for `is_recipient`."""
    return keyring.derive_all(_PURPOSE)


def is_recipient(recipient: str, to: str, app_id: str, *, keys: Sequence[bytes]) -> bool:
    """Return whether a hash is that of an address."""
    return any(hmac.compare_digest(_hash(key, app_id, to), recipient) for key in keys)


# A former or pending address of the user may belong to another user.
_OF_USER = """
select social_id from identities where app_id = $1 and uid = $2 and platform in ('email', 'phone')
union select address from (
    select address from pending_emails where app_id = $1 and uid = $2
    union select address from earlier_emails where app_id = $1 and uid = $2) unbound
where not exists (
    select from identities i where i.app_id = $1 and i.platform = 'email' and i.social_id = address and i.uid <> $2)
"""


async def recipients_of_user(conn: Connection, app_id: str, uid: str, *, keyring: Keyring) -> list[str]:
    """Return the hashes of a user's addresses and phone number, with each master key."""
    found = [row[0] for row in await conn.fetch(_OF_USER, app_id, uid)]
    return [_hash(key, app_id, to) for key in keyring.derive_all(_PURPOSE) for to in found]


def _hash(key: bytes, app_id: str, to: str) -> str:
    return hmac.new(key, f"{app_id}/{to}".encode(), hashlib.sha256).hexdigest()
