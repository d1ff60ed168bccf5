"""Weibo (`microblog`): checks an access token."""

from datetime import datetime
from typing import ClassVar

from vendors.http.outgoing import Repeat
from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_audiences, check_issued_to_us
from vendors.signin.calls import ErrorCodes, get, post, sendable
from vendors.signin.fields import expiration, gender, identifier, text, web_url
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity

_HOST = "https://api.weibo.com"
_BUSY = frozenset({"10001", "10002", "10003", "10009", "10010", "10011", "10022", "10023", "10024"})
_CODES = ErrorCodes(("error_code", "error"), busy=_BUSY)


class Weibo:
    proof_fields: ClassVar[tuple[str, ...]] = ("access_token",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_audiences(app)
        self._http = http
        self._app = app
        self._base = app.base_url or _HOST

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        access_token = sendable(self._app, "access_token", proof.access_token)
        url = f"{self._base}/oauth2/get_token_info"
        answer = await post(self._http, self._app, url, {"access_token": access_token}, repeat=Repeat.SAFE)
        value = answer.require_success(_CODES)
        check_issued_to_us(self._app, value, "appkey")
        return VerifiedIdentity(
            social_id=identifier(self._app.platform, value, "uid"),
            access_token=access_token,
            expiration_date=expiration(now, value, "expire_in"),
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        query = {"access_token": identity.access_token, "uid": identity.social_id}
        answer = await get(self._http, self._app, f"{self._base}/2/users/show.json", query, personal=True)
        value = answer.require_success(_CODES)
        # The fields `province` and `city` are codes. The names are in `location`, such as "北京 朝阳区".
        province, _, city = text(value, "location").partition(" ")
        return Profile(
            user_name=text(value, "screen_name", "name"),
            avatar=web_url(value, "avatar_hd", "avatar_large", "profile_image_url"),
            province=province,
            city=city,
            gender=gender(value, "gender"),
        )
