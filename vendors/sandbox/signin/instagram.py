"""The sandbox's Instagram: codes of professional accounts, and numbers as ids that JavaScript cannot represent."""

from functools import partial

from aiohttp import web

from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import REDIRECT_URI, Grants, Reason, as_number, dialect, form


def _error(message: str) -> Refusal:
    return Refusal(400, {"error_type": "OAuthException", "code": 400, "error_message": message})


def _graph_error(status: int, code: int, message: str) -> Refusal:
    return Refusal(status, {"error": {"message": message, "type": "OAuthException", "code": code}})


_DIALECT = dialect(
    "instagram",
    busy=_graph_error(400, 2, "Service temporarily unavailable"),
    limited=_graph_error(400, 4, "Application request limit reached"),
    denied=_graph_error(400, 190, "Error validating access token"),
)
_REASONS: dict[Reason, str] = {
    "unknown": "Matching code was not found or was already used",
    "used": "Matching code was not found or was already used",
    "other_app": "Matching code was not found or was already used",
    "expired": "This authorization code has expired",
    "secret": "Error validating client secret",
}


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("instagram", lambda reason: _error(_REASONS[reason]), proof="code")
    return [
        grants.route(),
        sandbox.post("/instagram/oauth/access_token", _DIALECT, "token", partial(_token, grants)),
        sandbox.get("/instagram/me", _DIALECT, "profile", partial(_me, grants)),
    ]


async def _token(grants: Grants, call: Call) -> None:
    fields = await form(call)
    if fields.get("grant_type") != "authorization_code" or fields.get("redirect_uri") != REDIRECT_URI:
        raise _error("Invalid platform app")
    app, secret = fields.get("client_id", ""), fields.get("client_secret", "")
    grant, access_token = await grants.redeem(call, fields.get("code", ""), app=app, secret=secret)
    value = {"access_token": access_token, "user_id": as_number(grant.issue.subject), **grant.issue.extra}
    await call.answer(value, empty={})


async def _me(grants: Grants, call: Call) -> None:
    grant = await grants.holder(call, call.request.query.get("access_token", ""))
    person = grant.issue.profile
    value = {
        "id": grant.issue.subject,
        "user_id": grant.issue.subject,
        "username": person.name,
        "name": person.name,
        "profile_picture_url": person.avatar,
    }
    asked = call.request.query.get("fields", "id").split(",")
    await call.answer({name: value[name] for name in asked if name in value}, empty={})
