"""QQ (`chat_network`, and `im_network_a` with an `open_id`): checks an access token."""

import re
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_audiences, check_issued_to_us
from vendors.signin.calls import ErrorCodes, PlatformResponse, get, sendable
from vendors.signin.fields import gender, identifier, text, web_url
from vendors.signin.protocols import Profile, Proof, ProofRefused, SignInApp, VerifiedIdentity

_HOST = "https://graph.qq.com"
_CODES = ErrorCodes(
    ("error", "ret"),
    busy=frozenset({"100023", "100024", "100025", "100026", "100027", "-6"}),
    config=frozenset({"100001", "100008", "100011", "100031"}),
)
_CALLBACK = re.compile(rb"\s*callback\s*\((.*)\)\s*;?\s*", re.DOTALL)
_WITH_OPEN_ID = "im_network_a"


class QQ:
    proof_fields: ClassVar[tuple[str, ...]] = ("access_token",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_audiences(app)
        self._http = http
        self._app = app
        self._base = app.base_url or _HOST

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        """The identity has no `expiration_date`, because QQ does not report it."""
        access_token = sendable(self._app, "access_token", proof.access_token)
        value = await self._token_info(access_token)
        check_issued_to_us(self._app, value, "client_id")
        openid = identifier(self._app.platform, value, "openid")
        if (proof.open_id or self._app.platform == _WITH_OPEN_ID) and proof.open_id != openid:
            problem = f"{self._app.platform} issued the access token to another open_id"
            raise ProofRefused(problem, seen="another open_id", allowed="the one that was sent")
        return VerifiedIdentity(social_id=openid, access_token=access_token)

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        token_info = await self._token_info(identity.access_token)
        query = {
            "access_token": identity.access_token,
            "oauth_consumer_key": identifier(self._app.platform, token_info, "client_id"),
            "openid": identity.social_id,
        }
        answer = await get(self._http, self._app, f"{self._base}/user/get_user_info", query, personal=True)
        value = _unwrapped(answer).require_success(_CODES)
        return Profile(
            user_name=text(value, "nickname"),
            avatar=web_url(value, "figureurl_qq_2", "figureurl_qq", "figureurl_qq_1", "figureurl_2", "figureurl"),
            province=text(value, "province"),
            city=text(value, "city"),
            gender=gender(value, "gender"),
        )

    async def _token_info(self, access_token: str) -> dict[str, Any]:
        query = {"access_token": access_token, "fmt": "json"}
        answer = await get(self._http, self._app, f"{self._base}/oauth2.0/me", query)
        return _unwrapped(answer).require_success(_CODES)


def _unwrapped(answer: PlatformResponse) -> PlatformResponse:
    """Return the answer without `callback( … );`, in which QQ wraps some JSON even if `fmt` asks for plain JSON."""
    found = _CALLBACK.fullmatch(answer.body)
    return replace(answer, body=found[1]) if found else answer
