"""Microsoft (`software_vendor_id`): checks an id token, or a work account's access token for Microsoft Graph."""

import re
from datetime import datetime
from typing import ClassVar

from vendors.http.transport import VendorHttp
from vendors.signin.calls import ErrorCodes, PlatformResponse, get, sendable
from vendors.signin.fields import identifier, text
from vendors.signin.id_token import (
    TENANT,
    Claims,
    IdTokens,
    check_subject,
    is_jwt,
    token_refused,
    unverified_claims,
)
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity

_GRAPH, _LOGIN = "https://graph.microsoft.com", "https://login.microsoftonline.com"
_ISSUERS = ("https://login.microsoftonline.com/{tid}/v2.0",)
_CODES = ErrorCodes(("code",), busy=frozenset({"serviceNotAvailable", "TooManyRequests", "generalException"}))
_ID_ONLY, _PROFILE = {"$select": "id"}, {"$select": "displayName"}
"""The fields of an account. Its name is left out of the proof, which must not depend on it."""
_PERSONAL_TENANT = "9188040d-6c67-4c5b-b112-36a304b66dad"
_PERSONAL_OID = re.compile(r"00000000-0000-0000-([0-9a-f]{4})-([0-9a-f]{12})")


class Microsoft:
    """Opaque access tokens of personal accounts are refused, because they do not show to which app they belong."""

    proof_fields: ClassVar[tuple[str, ...]] = ("access_token", "id_token")

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        self._http = http
        self._app = app
        self._me = f"{app.base_url or _GRAPH}/v1.0/me"
        self._id_tokens = IdTokens(http, app, _ISSUERS, f"{app.base_url or _LOGIN}/common/discovery/v2.0/keys")

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        sent = proof.id_token or proof.access_token
        if not is_jwt(sent):
            raise token_refused(self._app, "it does not show to which app it was issued. Send an id token")
        claims = unverified_claims(self._app, sent)
        requester = claims.get("appid", claims.get("azp"))
        if requester is not None and requester not in self._app.audiences:
            allowed = list(self._app.audiences)
            raise token_refused(self._app, "it was issued to another app", seen=requester, allowed=allowed)
        if requester is None or claims.get("aud") in self._app.audiences:
            return await self._verify_id_token(sent, proof, now=now)
        return await self._verify_access_token(sent, claims)

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        if not identity.access_token:
            return identity.profile
        answer = await get(self._http, self._app, self._me, _PROFILE, bearer=identity.access_token, personal=True)
        value = _require_success(answer)
        return Profile(user_name=text(value, "displayName"))

    async def _verify_id_token(self, token: str, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        claims = await self._id_tokens.verify(token, proof, now=now)
        return VerifiedIdentity(self._account(claims), profile=Profile(user_name=text(claims, "name")))

    async def _verify_access_token(self, access_token: str, claims: Claims) -> VerifiedIdentity:
        """Let Graph check the signature, because only Graph can. The signature covers the claims that were read."""
        self._check_allowed(claims)
        bearer = sendable(self._app, "access_token", access_token)
        value = _require_success(await get(self._http, self._app, self._me, _ID_ONLY, bearer=bearer))
        social_id = identifier(self._app.platform, value, "id")
        if social_id != self._account(claims):
            raise token_refused(self._app, "its oid is not that of the account")
        return VerifiedIdentity(social_id=social_id, access_token=access_token)

    def _check_allowed(self, claims: Claims) -> None:
        """Raise `ProofRefused` if the config accepts only tokens of other tenants, or only those with a nonce.

        Issuers of access tokens and id tokens have different forms, so the tenants are compared.
        """
        if self._app.require_nonce:
            raise token_refused(self._app, "it has no nonce. Send an id token")
        tenant, issuers = claims.get("tid"), self._app.issuers or _ISSUERS
        allowed = {part for issuer in issuers for part in issuer.split("/")}
        if not (isinstance(tenant, str) and tenant) or allowed.isdisjoint({tenant, TENANT}):
            raise token_refused(self._app, "it is of another tenant", seen=tenant, allowed=list(issuers))

    def _account(self, claims: Claims) -> str:
        """Return the account's id at Graph, so that both kinds of proof yield the same identity."""
        oid = check_subject(self._app, claims, "", "oid")
        personal = claims.get("tid") == _PERSONAL_TENANT and _PERSONAL_OID.fullmatch(oid)
        return f"{personal[1]}{personal[2]}" if personal else oid


def _require_success(answer: PlatformResponse) -> dict[str, object]:
    value = answer.value()
    error = value.get("error")
    answer.check(error if isinstance(error, dict) else {}, _CODES)
    return value
