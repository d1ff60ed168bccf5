"""The sandbox's JD.com: codes, and a profile for which calls are signed with the app's secret."""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from aiohttp import web

from streams.wire.codec import loads, now_ms
from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import SECRET, Grants, Reason, dialect, form, is_beijing_time


def _error(code: int, message: str) -> Refusal:
    return Refusal(200, {"code": code, "msg": message, "requestId": "3f1a6c0e5d7b"})


def _api_error(code: str, message: str) -> Refusal:
    return Refusal(200, {"error_response": {"code": code, "zh_desc": message, "en_desc": message}})


_METHOD = "jingdong.user.getUserInfoByOpenId"
_DIALECT = dialect(
    "jd",
    busy=_error(65, "platform service unavailable"),
    limited=_error(2, "App Call Limited"),
    denied=_error(410, "the user has revoked the authorization"),
)
_API_DIALECT = dialect(
    "jd",
    busy=_api_error("65", "platform service unavailable"),
    limited=_api_error("2", "App Call Limited"),
    denied=_api_error("19", "Invalid access_token"),
)
_REASONS: dict[Reason, tuple[int, str]] = {
    "unknown": (400, "invalid code"),
    "used": (400, "invalid code"),
    "other_app": (400, "invalid code"),
    "expired": (19, "expired code or access_token"),
    "secret": (403, "invalid app_key or app_secret"),
}


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("jd", lambda reason: _error(*_REASONS[reason]), proof="code")
    return [
        grants.route(),
        sandbox.post("/jd/oauth2/access_token", _DIALECT, "token", partial(_token, grants)),
        sandbox.post("/jd/routerjson", _API_DIALECT, "profile", partial(_router, grants)),
    ]


async def _token(grants: Grants, call: Call) -> None:
    fields = await form(call)
    if fields.get("grant_type") != "authorization_code":
        raise _error(401, "invalid grant_type")
    app, secret = fields.get("app_key", ""), fields.get("app_secret", "")
    grant, access_token = await grants.redeem(call, fields.get("code", ""), app=app, secret=secret)
    value: dict[str, Any] = {
        "access_token": access_token,
        "expires_in": grant.issue.expires_in,
        "refresh_token": f"refresh-{access_token}",
        "scope": "snsapi_base",
        "open_id": grant.issue.subject,
        "uid": "7060954021",
        "time": now_ms(),
        "token_type": "bearer",
        "code": 0,
        "xid": f"o*{grant.issue.subject}",
    }
    await call.answer({**value, **grant.issue.extra}, empty={})


async def _router(grants: Grants, call: Call) -> None:
    query = call.request.query
    grant = await grants.holder(call, query.get("access_token", ""))
    if query.get("sign") != _signature(SECRET, query):
        raise _api_error("12", "Invalid Signature")
    if query.get("method") != _METHOD or query.get("v") != "2.0":
        raise _api_error("22", "Invalid method or version")
    if not is_beijing_time(query.get("timestamp", "")):
        raise _api_error("14", "Invalid timestamp")
    asked = loads(query.get("360buy_param_json", "{}"))
    if query.get("app_key") != grant.issue.app or asked.get("openId") != grant.issue.subject:
        raise _api_error("21", "Invalid openId")
    person = grant.issue.profile
    data = {
        "nickName": person.name,
        "imageUrl": person.avatar,
        "gendar": {"male": "1", "female": "2"}.get(person.gender, "0"),
    }
    result = {"getuserinfobyappidandopenid_result": {"code": 0, "data": data}, "code": "0"}
    await call.answer({"jingdong_user_getUserInfoByOpenId_response": result}, empty={})


def _signature(secret: str, query: Mapping[str, str]) -> str:
    pairs = sorted((name, value) for name, value in query.items() if name != "sign")
    covered = f"{secret}{''.join(name + value for name, value in pairs)}{secret}"
    return hashlib.md5(covered.encode(), usedforsecurity=False).hexdigest().upper()
