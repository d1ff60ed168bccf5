"""Taobao (`retail_platform`): redeems a code. The response also has the person's name."""

from datetime import datetime
from typing import ClassVar
from urllib.parse import unquote

from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_code_app
from vendors.signin.calls import ErrorCodes, post, sendable
from vendors.signin.fields import expiration, identifier, optional_token, text, token
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity

_HOST = "https://oauth.taobao.com"
_CODES = ErrorCodes(
    ("error",),
    busy=frozenset({"server_error", "temporarily_unavailable"}),
    config=frozenset({"invalid_client", "unauthorized_client"}),
)


class Taobao:
    proof_fields: ClassVar[tuple[str, ...]] = ("code",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_code_app(app, needs_redirect=True)
        self._http = http
        self._app = app

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        app = self._app
        form = {
            "client_id": app.client_id,
            "client_secret": app.client_secret.get_secret_value(),
            "code": sendable(app, "code", proof.code),
            "grant_type": "authorization_code",
            "redirect_uri": app.redirect_uri,
        }
        answer = await post(self._http, app, f"{app.base_url or _HOST}/token", form)
        value = answer.require_success(_CODES)
        name = {"name": unquote(text(value, "taobao_user_nick"))}
        return VerifiedIdentity(
            social_id=identifier(app.platform, value, "taobao_user_id", "taobao_open_uid"),
            access_token=token(app.platform, value, "access_token"),
            refresh_token=optional_token(app.platform, value, "refresh_token"),
            expiration_date=expiration(now, value, "expires_in"),
            profile=Profile(user_name=text(name, "name")),
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        """Return None unless `identity` comes from `verify`, because Taobao sends the name only with the token."""
        return identity.profile
