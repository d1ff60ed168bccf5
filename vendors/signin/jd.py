"""JD.com (`retail_platform`): redeems a code. The response has an `xid`."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import ClassVar
from urllib.parse import urlencode

from streams.wire.codec import dumps
from vendors.http.outgoing import Repeat
from vendors.http.transport import VendorHttp
from vendors.signin.apps import check_code_app
from vendors.signin.calls import ErrorCodes, post, sendable
from vendors.signin.fields import expiration, gender, identifier, nested, optional_token, text, token, web_url
from vendors.signin.protocols import Profile, Proof, SignInApp, VerifiedIdentity

_TOKEN_HOST = "https://open-oauth.jd.com"  # noqa: S105 - an address
_API_HOST = "https://api.jd.com"
_CODES = ErrorCodes(("code",), busy=frozenset({"2", "65", "67"}))
_METHOD = "jingdong.user.getUserInfoByOpenId"
_RESULT = ("jingdong_user_getUserInfoByOpenId_response", "getuserinfobyappidandopenid_result")
_BEIJING = timezone(timedelta(hours=8))


class JD:
    proof_fields: ClassVar[tuple[str, ...]] = ("code",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_code_app(app)
        self._http = http
        self._app = app

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        app = self._app
        form = {
            "app_key": app.client_id,
            "app_secret": app.client_secret.get_secret_value(),
            "grant_type": "authorization_code",
            "code": sendable(app, "code", proof.code),
        }
        answer = await post(self._http, app, f"{app.base_url or _TOKEN_HOST}/oauth2/access_token", form)
        value = answer.require_success(_CODES)
        return VerifiedIdentity(
            social_id=identifier(app.platform, value, "open_id", "uid"),
            xid=optional_token(app.platform, value, "xid"),
            access_token=token(app.platform, value, "access_token"),
            refresh_token=optional_token(app.platform, value, "refresh_token"),
            expiration_date=expiration(now, value, "expires_in"),
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        parameters = {
            "method": _METHOD,
            "app_key": self._app.client_id,
            "access_token": identity.access_token,
            "timestamp": datetime.now(_BEIJING).strftime("%Y-%m-%d %H:%M:%S"),
            "v": "2.0",
            "360buy_param_json": dumps({"openId": identity.social_id}).decode(),
        }
        parameters["sign"] = signature(self._app.client_secret.get_secret_value(), parameters)
        # JD expects the parameters of this POST in the query.
        url = f"{self._app.base_url or _API_HOST}/routerjson?{urlencode(parameters)}"
        answer = await post(self._http, self._app, url, {}, repeat=Repeat.SAFE, personal=True)
        value = answer.value()
        answer.check(nested(value, "error_response"), _CODES)
        answer.check(value, _CODES)
        result = answer.check(nested(value, *_RESULT), _CODES)
        data = nested(result, "data")
        return Profile(
            user_name=text(data, "nickName"), avatar=web_url(data, "imageUrl"), gender=gender(data, "gendar")
        )


def signature(secret: str, parameters: Mapping[str, str]) -> str:
    """Return the signature of a call: MD5 in upper case, as the protocol prescribes."""
    covered = secret + "".join(name + parameters[name] for name in sorted(parameters)) + secret
    return hashlib.md5(covered.encode(), usedforsecurity=False).hexdigest().upper()
