"""The sandbox's WeChat: codes of apps, and plain text with the status 200 for all answers."""

from functools import partial
from typing import Any

from aiohttp import web

from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import Grants, Reason, dialect

PLAIN = "text/plain"


def error(code: int, message: str) -> Refusal:
    text = f"{message}, rid: 6553f100-0a1b2c3d-4e5f6071"
    return Refusal(200, {"errcode": code, "errmsg": text}, {"Content-Type": PLAIN})


BUSY = error(-1, "system error")
LIMITED = error(45011, "api minute-quota reach limit")
DENIED = error(40226, "code blocked")
_DIALECT = dialect("wechat", busy=BUSY, limited=LIMITED, denied=DENIED)
_REASONS: dict[Reason, tuple[int, str]] = {
    "unknown": (40029, "invalid code"),
    "other_app": (40029, "invalid code"),
    "expired": (42003, "code expired"),
    "used": (40163, "code been used"),
    "secret": (40125, "invalid appsecret"),
}


def refusal(reason: Reason) -> Refusal:
    return error(*_REASONS[reason])


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("wechat", refusal, proof="code")
    return [
        grants.route(),
        sandbox.get("/wechat/sns/oauth2/access_token", _DIALECT, "token", partial(_token, grants)),
        sandbox.get("/wechat/sns/userinfo", _DIALECT, "profile", partial(_user_info, grants)),
    ]


async def _token(grants: Grants, call: Call) -> None:
    query = call.request.query
    if query.get("grant_type") != "authorization_code":
        raise error(40002, "invalid grant_type")
    app, secret = query.get("appid", ""), query.get("secret", "")
    grant, access_token = await grants.redeem(call, query.get("code", ""), app=app, secret=secret)
    value: dict[str, Any] = {
        "access_token": access_token,
        "expires_in": grant.issue.expires_in,
        "refresh_token": f"refresh-{access_token}",
        "openid": grant.issue.subject,
        "scope": "snsapi_userinfo",
        "unionid": f"union-{grant.issue.subject}",
    }
    await call.answer({**value, **grant.issue.extra}, empty={}, content_type=PLAIN)


async def _user_info(grants: Grants, call: Call) -> None:
    query = call.request.query
    grant = await grants.holder(call, query.get("access_token", ""))
    person = grant.issue.profile
    if query.get("openid") != grant.issue.subject:
        raise error(40003, "invalid openid")
    if query.get("lang") != "zh_CN":  # The people of the sandbox have Chinese names of places only.
        person = person.model_copy(update={"region": "", "province": "", "city": ""})
    value = {
        "openid": grant.issue.subject,
        "nickname": person.name,
        "sex": {"male": 1, "female": 2}.get(person.gender, 0),
        "province": person.province,
        "city": person.city,
        "country": person.region,
        "headimgurl": person.avatar,
        "privilege": [],
        "unionid": f"union-{grant.issue.subject}",
    }
    await call.answer(value, empty={}, content_type=PLAIN)
