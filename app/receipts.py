"""Signed receipts of what was deleted when a user was deactivated, and the keys that verify them.

A receipt is a JWS (RFC 7515) of the algorithm EdDSA. Its key pair is derived from the master key, so operators have
no other secret to keep. The public keys are a JWKS (RFC 7517), which includes those of earlier master keys.
"""

import hashlib
from base64 import urlsafe_b64encode

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.services import Services
from storage.secrets import Keyring
from storage.userdata import erasures
from storage.userdata.erasures import NOT_SEARCHED, Cause, Erasure, Revocation, RevocationState
from storage.userdata.tables import USER_TABLES
from streams.wire.codec import rfc3339
from streams.wire.model import Model

_ALGORITHM = "EdDSA"
_PURPOSE = "receipts"
_KEY_ID_CHARACTERS = 16


class PlatformReceipt(Model):
    platform: str
    """A sign-in platform at which the user had an identity."""
    token: RevocationState
    """The state of the token that the platform issued: `pending` until the platform has revoked it; `failed` if all
    attempts have failed; `unsupported` if a token was deleted here that cannot be revoked there; `no_token` if none
    was stored."""
    settled_at: str | None = None
    """When this state was reached. Missing if it is `pending` or `failed`."""


class Kept(Model):
    rows: int | None = None
    """Number of rows when the receipt was signed. Absent if they are not counted."""
    content: str
    """The content of the rows."""


class ErasureReceipt(Model):
    app_id: str
    user_id: str
    cause: Cause
    """`confirm`: the user has confirmed the deactivation. `freeze_end`: the freeze has ended. `operator`: an
    operator has deactivated the user."""
    deactivated_at: str
    complete: bool
    """False while conversations or files remain to be deleted, or tokens to be revoked, and while streams that
    began before the deactivation may still store data."""
    erased_at: str | None = None
    """When everything was deleted. Absent before that."""
    deleted: dict[str, int]
    """How many of each were deleted."""
    kept: dict[str, Kept]
    """The kinds of data that are kept."""
    not_searched: dict[str, str]
    """Places that were not searched and may still hold data of the user, each with a description."""
    platforms: list[PlatformReceipt]


class ReceiptReply(Model):
    """The receipt of an erasure, as JSON and signed."""

    receipt: ErasureReceipt
    signed: str
    """The receipt as a JWS. Its payload also has `iss` and `iat`. `/.well-known/jwks.json` has the key."""


class PublicKey(Model):
    kty: str = "OKP"
    crv: str = "Ed25519"
    alg: str = _ALGORITHM
    use: str = "sig"
    kid: str
    x: str


class PublicKeys(Model):
    """The public keys, as a JSON Web Key Set."""

    keys: list[PublicKey]


async def find_receipt(services: Services, app_id: str, uid: str) -> ReceiptReply | None:
    """Return the receipt of a deactivated user, signed now, or `None` if there is no such user."""
    async with services.database.connection() as conn:
        erasure = await erasures.find(conn, app_id, uid)
    if erasure is None:
        return None
    receipt = _receipt(erasure)
    key = _private_keys(services.keyring)[0]
    issued = {"iss": services.settings.public_url, "iat": int(services.clock.now(app_id).timestamp())}
    claims = {**issued, **receipt.model_dump(exclude_none=True)}
    signed = jwt.encode(claims, key, _ALGORITHM, {"kid": _public(key).kid})
    return ReceiptReply(receipt=receipt, signed=signed)


def public_keys(keyring: Keyring) -> PublicKeys:
    """Return the keys that verify receipts."""
    return PublicKeys(keys=[_public(key) for key in _private_keys(keyring)])


def _private_keys(keyring: Keyring) -> list[Ed25519PrivateKey]:
    return [Ed25519PrivateKey.from_private_bytes(seed) for seed in keyring.derive_all(_PURPOSE)]


def _public(key: Ed25519PrivateKey) -> PublicKey:
    raw = key.public_key().public_bytes_raw()
    kid = hashlib.sha256(raw).hexdigest()[:_KEY_ID_CHARACTERS]
    return PublicKey(kid=kid, x=urlsafe_b64encode(raw).rstrip(b"=").decode())


def _receipt(erasure: Erasure) -> ErasureReceipt:
    return ErasureReceipt(
        app_id=erasure.app_id,
        user_id=erasure.uid,
        cause=erasure.cause,
        deactivated_at=rfc3339(erasure.deactivated_at),
        complete=erasure.complete,
        erased_at=None if erasure.erased_at is None else rfc3339(erasure.erased_at),
        deleted=dict(erasure.deleted),
        kept={
            table.name: Kept(rows=erasure.kept.get(table.name), content=table.kept)
            for table in USER_TABLES
            if table.kept
        },
        not_searched=dict(NOT_SEARCHED),
        platforms=[_platform(revocation) for revocation in erasure.revocations],
    )


def _platform(revocation: Revocation) -> PlatformReceipt:
    settled_at = None if revocation.settled_at is None else rfc3339(revocation.settled_at)
    return PlatformReceipt(platform=revocation.platform, token=revocation.state, settled_at=settled_at)
