"""Alipay (`payment_wallet_a`): redeems a code. Requests and responses are signed with RSA."""

import asyncio
from base64 import b64decode
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from streams.wire.damaged import BrokenObject, json_object
from vendors.errors import Garbled
from vendors.http.transport import VendorHttp
from vendors.signin.alipay_keys import private_key, public_key, signature, signed_object
from vendors.signin.apps import check_code_app
from vendors.signin.calls import ErrorCodes, PlatformResponse, post, sendable
from vendors.signin.fields import expiration, gender, identifier, nested, optional_token, text, token, web_url
from vendors.signin.protocols import Profile, Proof, ProofRefused, SignInApp, VerifiedIdentity

_HOST = "https://openapi.alipay.com"
_BEIJING = timezone(timedelta(hours=8))
_CODES = ErrorCodes(
    ("code", "sub_code"),
    busy=frozenset({"20000", "40005", "isp.unknow-error", "aop.ACQ.SYSTEM_ERROR"}),
    config=frozenset(
        f"isv.{problem}"
        for problem in (
            *("invalid-app-id", "invalid-signature", "missing-signature", "missing-signature-key"),
            *("invalid-timestamp", "insufficient-isv-permissions"),
        )
    ),
    success=frozenset({"", "10000"}),
)


class Alipay:
    proof_fields: ClassVar[tuple[str, ...]] = ("code",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        check_code_app(app, needs_secret=False)
        self._http = http
        self._app = app
        self._private_key = private_key(app)
        self._public_key = public_key(app)

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        code = sendable(self._app, "code", proof.code)
        parameters = {"grant_type": "authorization_code", "code": code}
        value = await self._call("alipay.system.oauth.token", parameters)
        return VerifiedIdentity(
            social_id=identifier(self._app.platform, value, "user_id", "open_id"),
            access_token=token(self._app.platform, value, "access_token"),
            refresh_token=optional_token(self._app.platform, value, "refresh_token"),
            expiration_date=expiration(now, value, "expires_in"),
        )

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        value = await self._call("alipay.user.info.share", {"auth_token": identity.access_token}, personal=True)
        return Profile(
            user_name=text(value, "nick_name"),
            avatar=web_url(value, "avatar"),
            province=text(value, "province"),
            city=text(value, "city"),
            gender=gender(value, "gender"),
        )

    async def _call(self, method: str, parameters: Mapping[str, str], *, personal: bool = False) -> dict[str, Any]:
        form = {
            "app_id": self._app.client_id,
            "method": method,
            "format": "JSON",
            "charset": "utf-8",
            "sign_type": "RSA2",
            "timestamp": datetime.now(_BEIJING).strftime("%Y-%m-%d %H:%M:%S"),
            "version": "1.0",
            **parameters,
        }
        # A signature takes about a millisecond, during which no stream would proceed.
        form["sign"] = await asyncio.to_thread(signature, self._private_key, form)
        url = f"{self._app.base_url or _HOST}/gateway.do?charset=utf-8"
        answer = await post(self._http, self._app, url, form, personal=personal)
        value = answer.value()
        if isinstance(value, BrokenObject):
            raise ProofRefused(f"{answer.platform} sent a profile whose signature cannot be checked")
        # Errors are not always signed, for example if Alipay does not know the app. A forged error can only refuse
        # a proof.
        answer.check(nested(value, "error_response"), _CODES)
        signed = self._signed(answer, f"{method.replace('.', '_')}_response", value.get("sign"))
        return answer.check(signed, _CODES)

    def _signed(self, answer: PlatformResponse, name: str, sign: Any) -> dict[str, Any]:
        """Return the object `name`, parsed from exactly the bytes that the signature covers."""
        covered = signed_object(answer.body, name)
        if not covered or not isinstance(sign, str):
            raise Garbled(answer.platform, f"sent a response without a signed {name}")
        try:
            self._public_key.verify(b64decode(sign), covered, PKCS1v15(), SHA256())
            return json_object(covered) or {}
        except (InvalidSignature, ValueError):
            raise Garbled(answer.platform, "sent a signature that does not match public_key") from None
