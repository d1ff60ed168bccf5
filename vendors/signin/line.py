"""LINE (`chat_network`): checks an access token and reads its owner."""

from datetime import datetime
from typing import Any, ClassVar

from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_audiences, check_issued_to_us
from vendors.signin.calls import ErrorCodes, get, sendable
from vendors.signin.fields import expiration, identifier, text, web_url
from vendors.signin.protocols import Profile, Proof, ProofRefused, SignInApp, VerifiedIdentity

_HOST = "https://api.line.me"
_TOKEN_CODES = ErrorCodes(("error",), busy=frozenset({"server_error", "temporarily_unavailable"}))
_PROFILE_CODES = ErrorCodes(())
"""Errors of the profile are distinguished by their status."""


class Line:
    proof_fields: ClassVar[tuple[str, ...]] = ("access_token",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_audiences(app)
        self._http = http
        self._app = app
        self._base = app.base_url or _HOST

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        """The identity contains its profile, because only the profile contains the id."""
        app = self._app
        access_token = sendable(app, "access_token", proof.access_token)
        query = {"access_token": access_token}
        info = (await get(self._http, app, f"{self._base}/oauth2/v2.1/verify", query)).require_success(_TOKEN_CODES)
        check_issued_to_us(app, info, "client_id")
        value = await self._person(access_token)
        return VerifiedIdentity(
            social_id=identifier(app.platform, value, "userId"),
            access_token=access_token,
            expiration_date=expiration(now, info, "expires_in"),
            profile=_profile(value),
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        return _profile(await self._person(identity.access_token))

    async def _person(self, access_token: str) -> dict[str, Any]:
        url = f"{self._base}/v2/profile"
        answer = await get(self._http, self._app, url, {}, bearer=access_token, personal=True)
        if answer.status in {401, 403}:
            raise ProofRefused(f"{self._app.platform} refused the access token ({answer.status})")
        return answer.require_success(_PROFILE_CODES)


def _profile(value: dict[str, Any]) -> Profile:
    return Profile(user_name=text(value, "displayName"), avatar=web_url(value, "pictureUrl"))
