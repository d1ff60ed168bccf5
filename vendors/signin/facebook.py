"""Facebook (`social_network_a`): checks an access token, or the id token of Limited Login."""

import hashlib
import hmac
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_code_app, check_issued_to_us
from vendors.signin.calls import ErrorCodes, get, sendable
from vendors.signin.fields import nested, text, unix_seconds, web_url
from vendors.signin.id_token import IdTokens, check_subject, is_jwt, token_refused
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity

_GRAPH, _LIMITED = "https://graph.facebook.com", "https://limited.facebook.com"
_VERSION = "v22.0"
_ISSUERS = ("https://www.facebook.com", "https://facebook.com")
_FIELDS = "id,name,picture.type(large)"
_BUSY = frozenset({"1", "2", "4", "17", "32", "341", "613"})
_CODES = ErrorCodes(("code",), busy=_BUSY, config=frozenset({"101"}))
_CHECK_CODES = replace(_CODES, config=frozenset({"101", "190"}))
"""Codes of a token check. It reports a bad user token inside `data`, so 190 means that our id and secret are
refused."""


class Facebook:
    proof_fields: ClassVar[tuple[str, ...]] = ("access_token",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_code_app(app)
        self._http = http
        self._app = app
        self._base = f"{app.base_url or _GRAPH}/{_VERSION}"
        keys_url = f"{app.base_url or _LIMITED}/.well-known/oauth/openid/jwks/"
        self._id_tokens = IdTokens(http, app, _ISSUERS, keys_url)

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        if is_jwt(proof.access_token):
            return await self._verify_limited(proof, now=now)
        if self._app.require_nonce:
            raise token_refused(self._app, "it has no nonce", allowed="an id token of Limited Login")
        access_token = sendable(self._app, "access_token", proof.access_token)
        secret = self._app.client_secret.get_secret_value()
        query = {"input_token": access_token, "access_token": f"{self._app.client_id}|{secret}"}
        answer = await get(self._http, self._app, f"{self._base}/debug_token", query)
        value = answer.value()
        answer.check(nested(value, "error"), _CHECK_CODES)
        data = nested(value, "data")
        answer.check(nested(data, "error"), _CODES)
        if data.get("is_valid") is not True or data.get("type", "USER") != "USER":
            raise token_refused(self._app, "it is not valid or not that of a person")
        check_issued_to_us(self._app, data, "app_id")
        return VerifiedIdentity(
            social_id=check_subject(self._app, data, proof.id, "user_id"),
            access_token=access_token,
            expiration_date=unix_seconds(data, "expires_at"),
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        if not identity.access_token:  # Limited Login only has the profile in its id token.
            return identity.profile
        query = {"fields": _FIELDS, **self._authorization(identity.access_token)}
        answer = await get(self._http, self._app, f"{self._base}/me", query, personal=True)
        value = answer.value()
        answer.check(nested(value, "error"), _CODES)
        picture = nested(value, "picture", "data")
        return Profile(
            user_name=text(value, "name"),
            avatar="" if picture.get("is_silhouette") is True else web_url(picture, "url"),
        )

    async def _verify_limited(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        claims = await self._id_tokens.verify(proof.access_token, proof, now=now)
        profile = Profile(text(claims, "name"), web_url(claims, "picture"))
        return VerifiedIdentity(social_id=claims["sub"], profile=profile)

    def _authorization(self, access_token: str) -> dict[str, str]:
        """Return the token with a proof that the call comes from our servers."""
        secret = self._app.client_secret.get_secret_value().encode()
        proof = hmac.new(secret, access_token.encode(), hashlib.sha256).hexdigest()
        return {"access_token": access_token, "appsecret_proof": proof}
