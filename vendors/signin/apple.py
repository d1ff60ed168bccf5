"""Sign in with Apple (`ios_vendor_id`): checks an id token, and exchanges a code for the refresh token.

The refresh token is needed to revoke the access of the app.
"""

import time
from datetime import datetime
from typing import ClassVar

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from vendors.http.outgoing import Repeat
from vendors.http.transport import VendorHttp
from vendors.signin.apps import invalid_config
from vendors.signin.calls import ErrorCodes, PlatformResponse, post, sendable
from vendors.signin.fields import expiration, optional_token, token
from vendors.signin.google import verified_email
from vendors.signin.id_token import Claims, IdTokens, audience_of, check_subject
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity

_HOST = ISSUER = "https://appleid.apple.com"
_SECRET_S = 300
_CODES = ErrorCodes(
    ("error",),
    busy=frozenset({"temporarily_unavailable", "server_error"}),
    config=frozenset({"invalid_client", "unauthorized_client", "unsupported_grant_type"}),
)


class Apple:
    """A client of Sign in with Apple. It exchanges codes for tokens only if the config has a `private_key`."""

    proof_fields: ClassVar[tuple[str, ...]] = ("id_token",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        self._http = http
        self._app = app
        self._base = app.base_url or _HOST
        self._tokens = IdTokens(http, app, (ISSUER,), f"{self._base}/auth/keys")
        self._key = _private_key(app) if app.private_key.get_secret_value() else None

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        claims = await self._tokens.verify(proof.id_token, proof, now=now)
        tokens = {}
        if proof.code and self._key is not None:
            tokens = await self._redeem(self._key, proof.code, claims)
        email = verified_email(claims)
        return VerifiedIdentity(
            social_id=claims["sub"],
            access_token=optional_token(self._app.platform, tokens, "access_token"),
            refresh_token=optional_token(self._app.platform, tokens, "refresh_token"),
            expiration_date=expiration(now, tokens, "expires_in"),
            profile=Profile(email=email) if email else None,
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        return identity.profile

    async def revoke(self, refresh_token: str) -> None:
        """End the link between the person and our app, as Apple requires when an account is deleted.

        Apple does not report to which of our apps the token was issued, so it is revoked for each. Raise
        `VendorError` or `ConfigInvalid` if none accepts it. Repeated calls succeed.
        """
        if self._key is None:
            raise invalid_config(self._app, "private_key is required to revoke tokens")
        answers = []
        for client_id in self._app.audiences:
            form = {"token": refresh_token, "token_type_hint": "refresh_token"}
            answers.append(await self._post("/auth/revoke", self._key, client_id, form, repeat=Repeat.SAFE))
        if all(answer.status >= 400 for answer in answers):
            answers[0].require_success(_CODES, proof=False)

    async def _redeem(self, key: EllipticCurvePrivateKey, code: str, claims: Claims) -> dict[str, object]:
        """Exchange the code for tokens, whose id token must belong to the same person."""
        app = self._app
        client_id = audience_of(app, claims)
        form = {"code": sendable(app, "code", code), "grant_type": "authorization_code"}
        # Only web sign-ins have a redirect URI. Their audience is `client_id`.
        if app.redirect_uri and client_id == app.client_id:
            form["redirect_uri"] = app.redirect_uri
        answer = await self._post("/auth/token", key, client_id, form, repeat=Repeat.NEVER)
        tokens = answer.require_success(_CODES)
        redeemed = await self._tokens.signed_claims(token(app.platform, tokens, "id_token"))
        check_subject(app, redeemed, claims["sub"])
        return tokens

    async def _post(
        self,
        path: str,
        key: EllipticCurvePrivateKey,
        client_id: str,
        form: dict[str, str],
        *,
        repeat: Repeat,
    ) -> PlatformResponse:
        now = int(time.time())
        secret = jwt.encode(
            {"iss": self._app.team_id, "iat": now, "exp": now + _SECRET_S, "aud": ISSUER, "sub": client_id},
            key,
            "ES256",
            {"kid": self._app.key_id},
        )
        form = {"client_id": client_id, "client_secret": secret, **form}
        return await post(self._http, self._app, f"{self._base}{path}", form, repeat=repeat)


def _private_key(app: SignInApp) -> EllipticCurvePrivateKey:
    for name, value in (("team_id", app.team_id), ("key_id", app.key_id)):
        if not value:
            raise invalid_config(app, f"{name} is required if private_key is set")
    try:
        key = load_pem_private_key(app.private_key.get_secret_value().encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise invalid_config(app, "private_key is not the PEM text of an ES256 key (a .p8 file of Apple)")
    return key
