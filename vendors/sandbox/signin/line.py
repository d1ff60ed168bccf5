"""The sandbox's LINE: information about access tokens, and profiles, which have errors of another form."""

from functools import partial

from aiohttp import web

from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import Grants, Reason, bearer, dialect

_CHECK_PATH = "/line/oauth2/v2.1/verify"


def _error(status: int, error: str, description: str) -> Refusal:
    return Refusal(status, {"error": error, "error_description": description})


_DIALECT = dialect(
    "line",
    busy=_error(400, "server_error", "please try again later"),
    limited=Refusal(429, {"message": "The API rate limit has been exceeded."}),
    denied=_error(400, "invalid_request", "The access token was revoked"),
)
_PROFILE_DIALECT = dialect(
    "line",
    busy=Refusal(503, {"message": "The service is temporarily unavailable."}),
    limited=Refusal(429, {"message": "The API rate limit has been exceeded."}),
    denied=Refusal(401, {"message": "The access token was revoked"}),
)


def _refusal(reason: Reason) -> Refusal:
    description = "access token expired" if reason == "expired" else "The access token is invalid"
    return _error(400, "invalid_request", description)


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("line", _refusal)
    return [
        grants.route(),
        sandbox.get(_CHECK_PATH, _DIALECT, "check", partial(_verify, grants)),
        sandbox.get("/line/v2/profile", _PROFILE_DIALECT, "profile", partial(_profile, grants)),
    ]


async def _verify(grants: Grants, call: Call) -> None:
    grant = await grants.holder(call, call.request.query.get("access_token", ""))
    value = {"scope": "profile", "client_id": grant.issue.app, "expires_in": grant.left_s}
    await call.answer({**value, **grant.issue.extra}, empty={})


async def _profile(grants: Grants, call: Call) -> None:
    try:
        grant = await grants.holder(call, bearer(call))
    except Refusal as refusal:
        if call.fault is not None:
            raise
        raise Refusal(401, {"message": "The access token expired"}) from refusal
    person = grant.issue.profile
    value = {"userId": grant.issue.subject, "displayName": person.name, "pictureUrl": person.avatar}
    await call.answer({**value, "statusMessage": "Hello"}, empty={})
