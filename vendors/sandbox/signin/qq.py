"""The sandbox's QQ: HTML as the content type, the status 200 for errors, and JSON wrapped in `callback( … );`."""

from functools import partial

from aiohttp import web

from streams.wire.codec import dumps
from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import Grants, Reason, dialect

_HTML = "text/html"


def _wrapped(value: object) -> bytes:
    return b"callback( " + dumps(value) + b" );\n"


def _error(code: int, description: str) -> Refusal:
    return Refusal(200, _wrapped({"error": code, "error_description": description}), {"Content-Type": _HTML})


_DIALECT = dialect(
    "qq",
    busy=_error(100024, "get permission list failed"),
    limited=_error(-6, "request frequency is over the limit"),
    denied=_error(100015, "access token revoked"),
)


def _refusal(reason: Reason) -> Refusal:
    if reason == "expired":
        return _error(100014, "access token expired")
    return _error(100016, "access token check failed")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("qq", _refusal)
    return [
        grants.route(),
        sandbox.get("/qq/oauth2.0/me", _DIALECT, "check", partial(_me, grants)),
        sandbox.get("/qq/user/get_user_info", _DIALECT, "profile", partial(_user_info, grants)),
    ]


async def _me(grants: Grants, call: Call) -> None:
    query = call.request.query
    grant = await grants.holder(call, query.get("access_token", ""))
    value = {"client_id": grant.issue.app, "openid": grant.issue.subject, **grant.issue.extra}
    plain = query.get("fmt") == "json" and not call.key_options.text
    await call.answer(dumps(value) if plain else _wrapped(value), empty={}, content_type=_HTML)


async def _user_info(grants: Grants, call: Call) -> None:
    query = call.request.query
    grant = await grants.holder(call, query.get("access_token", ""))
    person = grant.issue.profile
    if query.get("oauth_consumer_key") != grant.issue.app or query.get("openid") != grant.issue.subject:
        raise Refusal(200, {"ret": -22, "msg": "openid is invalid"}, {"Content-Type": _HTML})
    value = {
        "ret": 0,
        "msg": "",
        "is_lost": 0,
        "nickname": person.name,
        "figureurl": person.avatar,
        "figureurl_qq_1": person.avatar,
        "figureurl_qq_2": person.avatar,
        "gender": {"male": "男", "female": "女"}.get(person.gender, ""),
        "province": person.province,
        "city": person.city,
        "year": "2000",
    }
    await call.answer(value, empty={}, content_type=_HTML)
