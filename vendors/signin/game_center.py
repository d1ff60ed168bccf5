"""Game Center (`ios_games_service`): checks a signature of Apple over the player's id (§2.2)."""

import binascii
import re
from base64 import b64decode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from vendors.http.transport import VendorHttp
from vendors.signin.apps import invalid_config
from vendors.signin.game_center_keys import GAME_CENTER_KEYS, parse_key_url, roots_of
from vendors.signin.protocols import Profile, Proof, ProofRefused, SignInApp, VerifiedIdentity

_UNSIGNED = "android_games_service"
_PAST, _FUTURE = timedelta(minutes=10), timedelta(minutes=2)
_SIGNED = ("public_key_url", "salt", "signature", "timestamp")
_PLAYER_ID = re.compile(r"[!-~]{1,256}", re.ASCII)
_MAX_BASE64 = 2048
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MS = 2**53


class GameCenter:
    """With `skip_signature_verify`, the client's claim is accepted, and the identity is marked as not trusted."""

    proof_fields: ClassVar[tuple[str, ...]] = ("team_player_id", "player_id")

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        self._http = http
        self._app = app
        self._bundle_ids = app.bundle_ids
        self.required_fields: Sequence[str] = () if app.skip_signature_verify else _SIGNED
        if app.platform == _UNSIGNED and not app.skip_signature_verify:
            raise invalid_config(
                app, "provider cannot be game_center, because clients send no signature with this platform"
            )
        if not (app.skip_signature_verify or any(self._bundle_ids)):
            problem = "bundle_ids must list the bundle ids of your apps; audiences is not used"
            raise invalid_config(app, problem)
        roots_of(app)

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        player_ids = self._player_ids(proof)
        if self._app.skip_signature_verify:
            return VerifiedIdentity(social_id=player_ids[0], trusted=False)
        parse_key_url(self._app, proof.public_key_url)
        salt, signature = self._bytes("salt", proof.salt), self._bytes("signature", proof.signature)
        signed_at = self._time(proof.timestamp, now)
        key = await GAME_CENTER_KEYS.find(self._http, self._app, proof.public_key_url, now=now)
        end = proof.timestamp.to_bytes(8, "big") + salt
        for player_id in player_ids:
            if any(
                _signs(key, signature, f"{player_id}{name}".encode() + end) for name in self._bundle_ids if name
            ):
                return VerifiedIdentity(
                    social_id=player_id,
                    # The salt is decoded, because the same salt can be written in several ways.
                    single_use=f"{player_id} {salt.hex()} {proof.timestamp}",
                    single_use_until=signed_at + _PAST,
                )
        raise self._refused("signature is wrong, or for another app", allowed=list(self._bundle_ids))

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        return None

    def _player_ids(self, proof: Proof) -> Sequence[str]:
        """Return the ids that may have been signed, the preferred one first."""
        player_ids = [player_id for player_id in (proof.team_player_id, proof.player_id) if player_id]
        if not player_ids or not all(map(_PLAYER_ID.fullmatch, player_ids)):
            raise self._refused("team_player_id or player_id is missing or not a player id")
        return player_ids

    def _bytes(self, name: str, value: str) -> bytes:
        try:
            decoded = b64decode(value, validate=True) if len(value) <= _MAX_BASE64 else b""
        except (binascii.Error, ValueError):
            decoded = b""
        if not decoded:
            raise self._refused(f"{name} is missing or not base64")
        return decoded

    def _time(self, timestamp: int, now: datetime) -> datetime:
        """Return the time of a signature. Signatures do not expire, so their age is limited here."""
        if not 0 < timestamp < _MAX_MS:
            raise self._refused("timestamp is missing or not in Unix milliseconds")
        try:
            signed_at = _EPOCH + timedelta(milliseconds=timestamp)
        except OverflowError:
            raise self._refused("timestamp is not in Unix milliseconds") from None
        if not now - _PAST <= signed_at <= now + _FUTURE:
            raise self._refused("timestamp is over 10 minutes old, or in the future", seen=signed_at, allowed=now)
        return signed_at

    def _refused(self, problem: str, *, seen: object = None, allowed: object = None) -> ProofRefused:
        return ProofRefused(f"{self._app.platform}: {problem}", seen=seen, allowed=allowed)


def _signs(key: RSAPublicKey, signature: bytes, message: bytes) -> bool:
    try:
        key.verify(signature, message, PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True
