"""The sandbox's Kakao: information about access tokens, and profiles, with numbers as ids."""

from functools import partial

from aiohttp import web

from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import Grants, Reason, as_number, bearer, dialect


def _error(status: int, code: int, message: str) -> Refusal:
    return Refusal(status, {"msg": message, "code": code})


_DIALECT = dialect(
    "kakao",
    busy=_error(400, -1, "Internal error, please try again later"),
    limited=_error(400, -10, "API limit has been exceeded."),
    denied=_error(403, -402, "insufficient scopes."),
)


def _refusal(reason: Reason) -> Refusal:
    return _error(401, -401, "this access token is already expired" if reason == "expired" else "no such token")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("kakao", _refusal)
    return [
        grants.route(),
        sandbox.get("/kakao/v1/user/access_token_info", _DIALECT, "check", partial(_token_info, grants)),
        sandbox.get("/kakao/v2/user/me", _DIALECT, "profile", partial(_me, grants)),
    ]


async def _token_info(grants: Grants, call: Call) -> None:
    grant = await grants.holder(call, bearer(call))
    value = {"id": as_number(grant.issue.subject), "expires_in": grant.left_s, "app_id": as_number(grant.issue.app)}
    await call.answer({**value, **grant.issue.extra}, empty={})


async def _me(grants: Grants, call: Call) -> None:
    grant = await grants.holder(call, bearer(call))
    person = grant.issue.profile
    account = {
        "email": person.email,
        "is_email_valid": True,
        "is_email_verified": person.email_verified,
        "gender": person.gender,
        "profile": {"nickname": person.name, "profile_image_url": person.avatar},
    }
    await call.answer({"id": as_number(grant.issue.subject), "kakao_account": account}, empty={})
