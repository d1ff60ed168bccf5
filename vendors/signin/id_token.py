"""Verifies id tokens (OpenID Connect): JSON Web Tokens that tell one of our apps who signed in at a provider.

The order of checks is algorithm, key, signature, issuer, audience, times, nonce, subject.
"""

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jwt
from jwt.api_jws import PyJWS

from streams.wire.damaged import json_object
from streams.wire.errors import InvalidParameter, listed
from streams.wire.nesting import check_nesting
from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_audiences
from vendors.signin.jwks import ALGORITHMS, JWKS
from vendors.signin.protocols import Proof, ProofRefused, SignInApp

MAX_TOKEN_BYTES = 16 * 1024
_MAX_SUBJECT = 256
_LEEWAY_S = 60
TENANT = "{tid}"
"""Placeholder in an issuer for the claim `tid` of a token."""
_SIGNATURES = PyJWS()

Claims = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IdTokens:
    """The id tokens of one provider for our app.

    `issuers` and `jwks_url` are the provider's own; the config may replace them. Issuers may contain `TENANT`.
    """

    http: VendorHttp
    app: SignInApp
    issuers: Sequence[str]
    jwks_url: str

    def __post_init__(self) -> None:
        check_audiences(self.app)

    async def verify(self, token: str, proof: Proof, *, now: datetime) -> Claims:
        """Return the claims of a token that proves the identity. Raise `ProofRefused` or `VendorError`."""
        claims = await self.signed_claims(token)
        self._check_issuer(claims)
        audience_of(self.app, claims)
        self._check_times(claims, now.timestamp())
        self._check_nonce(claims, proof.nonce)
        check_subject(self.app, claims, proof.id)
        return claims

    async def signed_claims(self, token: str) -> Claims:
        """Return the claims of a token with a valid signature of the provider."""
        header = _part(self.app, token, 0)
        # `crit` names required extensions. The others contain keys that the provider has not published.
        if not header.keys().isdisjoint({"crit", "jku", "x5u", "jwk"}):
            raise token_refused(self.app, "its header has crit, jku, x5u or jwk")
        algorithm, kid = header.get("alg"), header.get("kid", "")
        if not (isinstance(algorithm, str) and algorithm in ALGORITHMS):
            raise token_refused(
                self.app, "its algorithm is not accepted", seen=algorithm, allowed=sorted(ALGORITHMS)
            )
        if not isinstance(kid, str):
            raise token_refused(self.app, "its kid is not text")
        claims = _part(self.app, token, 1)
        url = self.app.jwks_url or self.jwks_url
        key = await JWKS.find(self.http, self.app.platform, url, kid=kid)
        if key is None:
            raise token_refused(self.app, "it is signed with an unknown key", seen=kid)
        if key.algorithm_name != algorithm:
            problem = "its algorithm is not that of its key"
            raise token_refused(self.app, problem, seen=algorithm, allowed=key.algorithm_name)
        try:
            _SIGNATURES.decode(token, key, [algorithm])
        except (jwt.InvalidTokenError, jwt.InvalidKeyError):
            raise token_refused(self.app, "its signature is wrong") from None
        return claims

    def _check_issuer(self, claims: Claims) -> None:
        issuers = self.app.issuers or self.issuers
        tenant = claims.get("tid")
        if isinstance(tenant, str) and tenant:
            issuers = [issuer.replace(TENANT, tenant) for issuer in issuers]
        if (issuer := claims.get("iss")) not in issuers:
            raise token_refused(self.app, "it is of another issuer", seen=issuer, allowed=list(issuers))

    def _check_times(self, claims: Claims, now: float) -> None:
        expires, not_before = _seconds(claims.get("exp")), _seconds(claims.get("nbf", 0))
        issued = _seconds(claims.get("iat", 0))
        if expires is None or not_before is None or issued is None:
            raise token_refused(self.app, "its exp, nbf or iat is missing or not a time")
        if now > expires + _LEEWAY_S:
            problem = f"it expired {now - expires:.0f} s ago"
            raise token_refused(
                self.app, problem, seen=f"exp {expires:.0f}", allowed=f"at least {now - _LEEWAY_S:.0f}"
            )
        if now < max(not_before, issued) - _LEEWAY_S:
            begins = max(not_before, issued)
            allowed = f"at most {now + _LEEWAY_S:.0f}"
            raise token_refused(self.app, "it is not valid yet", seen=f"nbf or iat {begins:.0f}", allowed=allowed)

    def _check_nonce(self, claims: Claims, nonce: str) -> None:
        if self.app.require_nonce and not nonce:
            raise token_refused(
                self.app, "nonce is required with it", seen="no nonce", allowed="the nonce of the login"
            )
        if nonce and not _is_nonce(claims.get("nonce"), nonce):
            seen = "another nonce" if claims.get("nonce") else "no nonce"
            raise token_refused(
                self.app, "its nonce is not the one that was sent", seen=seen, allowed="the one that was sent"
            )


def token_refused(app: SignInApp, problem: str, *, seen: object = None, allowed: object = None) -> ProofRefused:
    """Return the error for a token. `seen` is shortened."""
    shown = None if seen is None else listed([str(seen)])
    return ProofRefused(f"{app.platform}: the token is refused, because {problem}", seen=shown, allowed=allowed)


def audience_of(app: SignInApp, claims: Claims) -> str:
    """Return the id of our app to which a token was issued."""
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    ours = [name for name in audiences if isinstance(name, str) and name and name in app.audiences]
    # `azp` names the app that requested a token for several apps.
    if not ours or (len(audiences) > 1 and claims.get("azp") not in app.audiences):
        raise token_refused(app, "it was issued to another app", seen=audience, allowed=list(app.audiences))
    return ours[0]


def check_subject(app: SignInApp, claims: Claims, sent_id: str, name: str = "sub") -> str:
    """Return the id of the person. It must equal the id that the client sent, if any."""
    found = claims.get(name)
    if not isinstance(found, str) or not 0 < len(found) <= _MAX_SUBJECT or not found.isprintable():
        raise token_refused(app, f"it has no valid {name}")
    if sent_id and found != sent_id:
        problem = "it belongs to another id than the one that was sent"
        raise token_refused(app, problem, seen="another id", allowed="the one that was sent")
    return found


def unverified_claims(app: SignInApp, token: str) -> Claims:
    """Return the claims of a token without checking its signature."""
    return _part(app, token, 1)


def is_jwt(token: str) -> bool:
    return token.count(".") == 2


def _part(app: SignInApp, token: str, index: int) -> dict[str, Any]:
    """Return the header (0) or the claims (1). PyJWT would parse JSON of any depth."""
    if len(token) > MAX_TOKEN_BYTES:
        raise token_refused(app, f"it has more than {MAX_TOKEN_BYTES} characters")
    parts = token.split(".")
    if len(parts) != 3 or not token.isascii():
        raise token_refused(app, "it is not a JSON Web Token")
    try:
        raw = urlsafe_b64decode(parts[index] + "=" * (-len(parts[index]) % 4))
        check_nesting(raw)
        value = json_object(raw)
    except (ValueError, binascii.Error, InvalidParameter):
        value = None
    if value is None:
        raise token_refused(app, "it is not a JSON Web Token")
    return value


def _is_nonce(claim: Any, nonce: str) -> bool:
    """Return whether a claim is the nonce, or its SHA-256 in hexadecimal.

    Apple's and Firebase's libraries give the provider only the hash, so that who sees the token lacks the nonce.
    """
    sent = nonce.encode(errors="surrogatepass")
    found = claim.encode(errors="surrogatepass") if isinstance(claim, str) else b""
    hashed = hmac.compare_digest(found.lower(), hashlib.sha256(sent).hexdigest().encode())
    return hmac.compare_digest(found, sent) or hashed


def _seconds(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
