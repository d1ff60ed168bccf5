"""Instagram (`photo_network`): redeems the code of a business or creator account."""

from datetime import datetime
from typing import Any, ClassVar

from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_code_app
from vendors.signin.calls import ErrorCodes, PlatformResponse, get, post, sendable
from vendors.signin.fields import expiration, identifier, nested, text, token, web_url
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity

_TOKEN_HOST = "https://api.instagram.com"  # noqa: S105 - an address
_PROFILE_HOST = "https://graph.instagram.com"
_CODES = ErrorCodes(("error_type", "code", "type"), busy=frozenset({"1", "2", "4", "17", "32", "613"}))
_PROFILE_FIELDS = "id,user_id,username,name,profile_picture_url"


class Instagram:
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
            "grant_type": "authorization_code",
            "redirect_uri": app.redirect_uri,
            # Instagram appends `#_` to the redirect URL. Clients may treat it as a part of the code.
            "code": sendable(app, "code", proof.code.removesuffix("#_")),
        }
        answer = await post(self._http, app, f"{app.base_url or _TOKEN_HOST}/oauth/access_token", form)
        value = _token_of(_require_success(answer))
        return VerifiedIdentity(
            social_id=identifier(app.platform, value, "user_id"),
            access_token=token(app.platform, value, "access_token"),
            expiration_date=expiration(now, value, "expires_in"),
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        query = {"fields": _PROFILE_FIELDS, "access_token": identity.access_token}
        answer = await get(self._http, self._app, f"{self._app.base_url or _PROFILE_HOST}/me", query, personal=True)
        value = _require_success(answer)
        return Profile(user_name=text(value, "username", "name"), avatar=web_url(value, "profile_picture_url"))


def _require_success(answer: PlatformResponse) -> dict[str, Any]:
    """Check the errors of both APIs. The Graph API has an error object; errors of the token endpoint are flat."""
    value = answer.value()
    answer.check(nested(value, "error") or value, _CODES)
    return value


def _token_of(value: dict[str, Any]) -> dict[str, Any]:
    """Return the object with the token. Newer versions of the API send a list with one object."""
    data = value.get("data")
    return data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else value
