"""Login with Amazon (`retail_platform`): redeems a code and checks the resulting token."""

from datetime import datetime
from typing import ClassVar

from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_code_app, check_issued_to_us
from vendors.signin.calls import ErrorCodes, get, post, sendable
from vendors.signin.fields import expiration, identifier, optional_token, text, token
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity

_HOST = "https://api.amazon.com"
_CODES = ErrorCodes(
    ("error",),
    busy=frozenset({"server_error", "ServerError", "temporarily_unavailable", "slow_down"}),
    config=frozenset({"invalid_client", "unauthorized_client"}),
)


class Amazon:
    proof_fields: ClassVar[tuple[str, ...]] = ("code",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_code_app(app, needs_redirect=True)
        self._http = http
        self._app = app
        self._base = app.base_url or _HOST

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        app = self._app
        form = {
            "grant_type": "authorization_code",
            "code": sendable(app, "code", proof.code),
            "redirect_uri": app.redirect_uri,
            "client_id": app.client_id,
            "client_secret": app.client_secret.get_secret_value(),
        }
        value = (await post(self._http, app, f"{self._base}/auth/o2/token", form)).require_success(_CODES)
        access_token = token(app.platform, value, "access_token")
        query = {"access_token": access_token}
        info = (await get(self._http, app, f"{self._base}/auth/o2/tokeninfo", query)).require_success(_CODES)
        check_issued_to_us(app, info, "aud")
        return VerifiedIdentity(
            social_id=identifier(app.platform, info, "user_id"),
            access_token=access_token,
            refresh_token=optional_token(app.platform, value, "refresh_token"),
            expiration_date=expiration(now, value, "expires_in"),
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        url = f"{self._base}/user/profile"
        answer = await get(self._http, self._app, url, {}, bearer=identity.access_token, personal=True)
        value = answer.require_success(_CODES)
        return Profile(user_name=text(value, "name"))
