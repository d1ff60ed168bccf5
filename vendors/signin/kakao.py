"""Kakao (`chat_network`): checks an access token."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_audiences, check_issued_to_us
from vendors.signin.calls import ErrorCodes, get, sendable
from vendors.signin.fields import expiration, gender, identifier, nested, text, web_url
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity

_HOST = "https://kapi.kakao.com"
_CODES = ErrorCodes(("code",), busy=frozenset({"-1", "-7", "-10", "-9798"}))


class Kakao:
    proof_fields: ClassVar[tuple[str, ...]] = ("access_token",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_audiences(app)
        self._http = http
        self._app = app
        self._base = app.base_url or _HOST

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        app = self._app
        access_token = sendable(app, "access_token", proof.access_token)
        url = f"{self._base}/v1/user/access_token_info"
        value = (await get(self._http, app, url, {}, bearer=access_token)).require_success(_CODES)
        check_issued_to_us(app, value, "app_id")
        return VerifiedIdentity(
            social_id=identifier(app.platform, value, "id"),
            access_token=access_token,
            expiration_date=expiration(now, value, "expires_in"),
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        url, bearer = f"{self._base}/v2/user/me", identity.access_token
        answer = await get(self._http, self._app, url, {}, bearer=bearer, personal=True)
        account = nested(answer.require_success(_CODES), "kakao_account")
        shown = nested(account, "profile")
        return Profile(
            user_name=text(shown, "nickname"),
            avatar=web_url(shown, "profile_image_url"),
            email=_verified_email(account),
            gender=gender(account, "gender"),
        )


def _verified_email(account: Mapping[str, Any]) -> str:
    """Return the email address of an account if it is verified and no other account has claimed it since."""
    verified = account.get("is_email_valid") is True and account.get("is_email_verified") is True
    return text(account, "email") if verified else ""
