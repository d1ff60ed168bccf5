"""WeChat mini programs and mini games (`im_network_b`): redeems the code of `wx.login`."""

from datetime import datetime
from typing import ClassVar

from vendors.http.outgoing import Repeat
from vendors.http.transport import VendorHttp
from vendors.signin.calls import get, sendable
from vendors.signin.fields import identifier
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity
from vendors.signin.wechat import CODES, HOST, check_wechat_app, social_id


class WeChatMini:
    proof_fields: ClassVar[tuple[str, ...]] = ("code",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_wechat_app(app)
        self._http = http
        self._app = app

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        """The identity has no access token: the `session_key` of the response must never reach a client."""
        app = self._app
        query = {
            "appid": app.client_id,
            "secret": app.client_secret.get_secret_value(),
            "js_code": sendable(app, "code", proof.code),
            "grant_type": "authorization_code",
        }
        url = f"{app.base_url or HOST}/sns/jscode2session"
        value = (await get(self._http, app, url, query, repeat=Repeat.NEVER)).require_success(CODES)
        openid = identifier(app.platform, value, "openid")
        return VerifiedIdentity(social_id=social_id(app, value), openid=openid)

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        """Return None: only the mini program itself can read the person's name, and only with consent."""
        return None
