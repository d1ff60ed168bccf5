"""The sandbox's Alipay: one gateway for all methods, signed calls, and signed answers with escaped slashes."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from streams.wire.codec import dumps
from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.alipay_keys import APP_KEY, PLATFORM_KEY
from vendors.sandbox.signin.grants import Grants, Reason, dialect, form, is_beijing_time

_TOKEN_METHOD = "alipay.system.oauth.token"  # noqa: S105 - the name of a method
_PROFILE_METHOD = "alipay.user.info.share"
_FIXED = {"sign_type": "RSA2", "version": "1.0", "format": "JSON", "charset": "utf-8"}


def _signed(name: str, value: Mapping[str, Any], encode: Callable[[Any], bytes] = dumps) -> bytes:
    """Return an answer whose signature covers the bytes of the object `name`, in which slashes are escaped."""
    covered = encode(value).replace(b"/", b"\\/")
    signature = b64encode(PLATFORM_KEY.sign(covered, PKCS1v15(), SHA256()))
    return b'{"%b":%b,"sign":"%b"}' % (name.encode(), covered, signature)


def _error(code: str, sub_code: str, name: str = "error_response") -> Refusal:
    text = {"msg": "Business Failed", "sub_msg": "请求未成功"}
    return Refusal(200, _signed(name, {"code": code, "sub_code": sub_code, **text}), {"Content-Type": "text/html"})


_DIALECT = dialect(
    "alipay",
    busy=_error("20000", "isp.unknow-error"),
    limited=_error("40005", "isv.app-call-limited"),
    denied=_error("40002", "isv.code-invalid"),
)
_REASONS: dict[Reason, tuple[str, str]] = {
    "unknown": ("40002", "isv.code-invalid"),
    "used": ("40002", "isv.code-invalid"),
    "other_app": ("40002", "isv.code-invalid"),
    "expired": ("20001", "aop.invalid-auth-token"),
}


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("alipay", lambda reason: _error(*_REASONS[reason]), proof="code")
    return [
        grants.route(),
        sandbox.post("/alipay/gateway.do", _DIALECT, "gateway", partial(_gateway, grants)),
    ]


async def _gateway(grants: Grants, call: Call) -> None:
    fields = await form(call)
    _check(fields)
    method = fields.get("method", "")
    if method == _TOKEN_METHOD:
        call.entry.stage = "token"
        value = await _token(grants, call, fields)
    elif method == _PROFILE_METHOD:
        call.entry.stage = "profile"
        value = await _person(grants, call, fields)
    else:
        raise _error("40002", "isv.invalid-method")
    answer = _signed(f"{method.replace('.', '_')}_response", value, call.encoded)
    await call.answer(answer, empty={}, content_type="text/html")


def _check(fields: Mapping[str, str]) -> None:
    """Check the parameters that all calls must have, and the signature."""
    covered = "&".join(f"{name}={fields[name]}" for name in sorted(fields) if fields[name] and name != "sign")
    try:
        APP_KEY.verify(b64decode(fields.get("sign", "")), covered.encode(), PKCS1v15(), SHA256())
    except (InvalidSignature, ValueError):
        raise _error("40002", "isv.invalid-signature") from None
    for name, value in _FIXED.items():
        if fields.get(name) != value:
            raise _error("40002", f"isv.invalid-{name.replace('_', '-')}")
    if not is_beijing_time(fields.get("timestamp", "")):
        raise _error("40002", "isv.invalid-timestamp")


async def _token(grants: Grants, call: Call, fields: Mapping[str, str]) -> dict[str, Any]:
    if fields.get("grant_type") != "authorization_code":
        raise _error("40002", "isv.grant-type-invalid")
    grant, token = await grants.redeem(call, fields.get("code", ""), app=fields.get("app_id", ""))
    return {
        "user_id": grant.issue.subject,
        "access_token": token,
        "expires_in": str(grant.issue.expires_in),
        "refresh_token": f"refresh-{token}",
        "re_expires_in": "2592000",
        **grant.issue.extra,
    }


async def _person(grants: Grants, call: Call, fields: Mapping[str, str]) -> dict[str, Any]:
    grant = await grants.holder(call, fields.get("auth_token", ""))
    person = grant.issue.profile
    return {
        "code": "10000",
        "msg": "Success",
        "user_id": grant.issue.subject,
        "avatar": person.avatar,
        "nick_name": person.name,
        "province": person.province,
        "city": person.city,
        "gender": {"male": "M", "female": "F"}.get(person.gender, ""),
    }
