"""WeChat (`im_network_b`): redeems the code of an app or a website."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from vendors.http.outgoing import Repeat
from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_code_app, invalid_config
from vendors.signin.calls import ErrorCodes, get, sendable
from vendors.signin.fields import expiration, gender, identifier, optional_token, text, token, web_url
from vendors.signin.protocols import Profile, Proof, ProofRefused, SignInApp, VerifiedIdentity

HOST = "https://api.weixin.qq.com"
CODES = ErrorCodes(
    ("errcode",),
    busy=frozenset({"-1", "45009", "45011"}),
    config=frozenset({"40013", "40125", "41002", "41004"}),
)
_TOKEN_PLATFORM = "im_network_a"  # noqa: S105 - a platform


class WeChat:
    proof_fields: ClassVar[tuple[str, ...]] = ("code",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_wechat_app(app)
        self._http = http
        self._app = app
        self._base = app.base_url or HOST

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        app = self._app
        query = {
            "appid": app.client_id,
            "secret": app.client_secret.get_secret_value(),
            "code": sendable(app, "code", proof.code),
            "grant_type": "authorization_code",
        }
        # The protocol redeems codes by GET, but a code can be used only once.
        url = f"{self._base}/sns/oauth2/access_token"
        value = (await get(self._http, app, url, query, repeat=Repeat.NEVER)).require_success(CODES)
        if str(value.get("is_snapshotuser")) == "1":
            raise ProofRefused(f"{app.platform} sent a temporary id, because the person only previews the page")
        openid = identifier(app.platform, value, "openid")
        return VerifiedIdentity(
            social_id=social_id(app, value),
            openid=openid,
            access_token=token(app.platform, value, "access_token"),
            refresh_token=optional_token(app.platform, value, "refresh_token"),
            expiration_date=expiration(now, value, "expires_in"),
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        query = {"access_token": identity.access_token, "openid": identity.openid, "lang": "zh_CN"}
        answer = await get(self._http, self._app, f"{self._base}/sns/userinfo", query, personal=True)
        value = answer.require_success(CODES)
        return Profile(
            user_name=text(value, "nickname"),
            avatar=web_url(value, "headimgurl"),
            region=text(value, "country"),
            province=text(value, "province"),
            city=text(value, "city"),
            gender=gender(value, "sex"),
        )


def social_id(app: SignInApp, value: Mapping[str, Any]) -> str:
    """Return the `openid`, or the `unionid`, which all apps of an operator share, if the config prefers it."""
    return identifier(app.platform, value, *(["unionid", "openid"] if app.prefer_unionid else ["openid"]))


def check_wechat_app(app: SignInApp) -> None:
    """Raise `ConfigInvalid` if the config is not sufficient, or if clients of its platform send access tokens."""
    if app.platform == _TOKEN_PLATFORM:
        raise invalid_config(
            app, "provider cannot be WeChat, whose access tokens do not show to which app they were issued"
        )
    check_code_app(app)
