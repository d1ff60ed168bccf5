"""The sandbox's Weibo: information about access tokens, and profiles. Some errors have the status 200."""

from functools import partial
from typing import Any

from aiohttp import web

from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import Grants, Reason, as_number, dialect, form


def _error(status: int, code: int, error: str) -> Refusal:
    return Refusal(status, {"error": error, "error_code": code, "request": "/oauth2/get_token_info"})


_DIALECT = dialect(
    "weibo",
    busy=_error(200, 10001, "system error"),
    limited=_error(403, 10023, "User requests out of rate limit!"),
    denied=_error(403, 21319, "Grant accesstoken refused"),
)


def _refusal(reason: Reason) -> Refusal:
    if reason == "expired":
        return _error(200, 21327, "expired_token")
    return _error(400, 21332, "invalid_access_token")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("weibo", _refusal)
    return [
        grants.route(),
        sandbox.post("/weibo/oauth2/get_token_info", _DIALECT, "check", partial(_token_info, grants)),
        sandbox.get("/weibo/2/users/show.json", _DIALECT, "profile", partial(_show, grants)),
    ]


async def _token_info(grants: Grants, call: Call) -> None:
    grant = await grants.holder(call, (await form(call)).get("access_token", ""))
    times = {"create_at": int(grant.issued_at), "expire_in": grant.left_s}
    info = {"uid": as_number(grant.issue.subject), "appkey": grant.issue.app, "scope": None, **times}
    await call.answer({**info, **grant.issue.extra}, empty={})


async def _show(grants: Grants, call: Call) -> None:
    query = call.request.query
    grant = await grants.holder(call, query.get("access_token", ""))
    person = grant.issue.profile
    if query.get("uid") != grant.issue.subject:
        raise _error(400, 20003, "User does not exists!")
    value: dict[str, Any] = {
        "id": as_number(grant.issue.subject),
        "idstr": grant.issue.subject,
        "screen_name": person.name,
        "name": person.name,
        "province": "11",
        "city": "5",
        "location": f"{person.province} {person.city}",
        "profile_image_url": person.avatar,
        "avatar_large": person.avatar,
        "gender": {"male": "m", "female": "f"}.get(person.gender, "n"),
    }
    await call.answer(value, empty={})
