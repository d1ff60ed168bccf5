"""Google (`search_vendor_id`): checks an id token."""

from datetime import datetime
from typing import ClassVar

from vendors.http.transport import VendorHttp
from vendors.signin.fields import text, web_url
from vendors.signin.id_token import Claims, IdTokens
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity

_HOST = "https://www.googleapis.com"
_ISSUERS = ("https://accounts.google.com", "accounts.google.com")


class Google:
    proof_fields: ClassVar[tuple[str, ...]] = ("id_token",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        self._tokens = IdTokens(http, app, _ISSUERS, f"{app.base_url or _HOST}/oauth2/v3/certs")

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        claims = await self._tokens.verify(proof.id_token, proof, now=now)
        return VerifiedIdentity(social_id=claims["sub"], profile=_profile(claims))

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        return identity.profile


def _profile(claims: Claims) -> Profile:
    return Profile(
        user_name=text(claims, "name"),
        avatar=web_url(claims, "picture"),
        email=verified_email(claims),
    )


def verified_email(claims: Claims) -> str:
    """Return the email address of an id token if the provider has verified it."""
    return text(claims, "email") if claims.get("email_verified") in [True, "true"] else ""
