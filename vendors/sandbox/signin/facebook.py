"""The sandbox's Facebook: checks of access tokens, profiles, and id tokens of Limited Login."""

import hashlib
import hmac
import time
from functools import partial
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps, loads_request
from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import SECRET, Grants, Reason, dialect
from vendors.sandbox.signin.id_tokens import IdTokenIssue, IdTokenIssuer

_ISSUER = "https://www.facebook.com"


class FacebookIssue(IdTokenIssue):
    limited: bool = False
    """The person has refused tracking, so the access token is an id token."""


def _error(status: int, code: int, message: str, kind: str = "OAuthException") -> Refusal:
    return Refusal(status, {"error": {"message": message, "type": kind, "code": code, "fbtrace_id": "AbCdEf"}})


_DIALECT = dialect(
    "facebook",
    busy=_error(503, 2, "Service temporarily unavailable"),
    limited=_error(400, 4, "(#4) Application request limit reached"),
    denied=_error(400, 10, "(#10) Application does not have permission for this action"),
)
_APP_REFUSED = _error(400, 190, "Invalid OAuth access token signature.")
_NOT_PROVEN = _error(400, 100, "Invalid appsecret_proof provided in the API argument", "GraphMethodException")


def _refusal(reason: Reason) -> Refusal:
    return _error(400, 190, "Error validating access token: Session has expired")


def _invalid(reason: Reason) -> Refusal:
    """Return the answer of `debug_token` about a bad token. Its status is 200."""
    error = {"code": 190, "message": "Invalid OAuth access token - Cannot parse access token", "subcode": 463}
    return Refusal(200, {"data": {"error": error, "is_valid": False, "scopes": []}})


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    tokens, grants = IdTokenIssuer(_ISSUER), Grants("facebook", _refusal)
    return [
        web.post("/facebook/_issue", partial(_issue, tokens, grants)),
        tokens.route(sandbox, "/facebook/.well-known/oauth/openid/jwks/", _DIALECT),
        sandbox.get("/facebook/v22.0/debug_token", _DIALECT, "check", partial(_debug_token, grants)),
        sandbox.get("/facebook/v22.0/me", _DIALECT, "profile", partial(_me, grants)),
    ]


async def _issue(tokens: IdTokenIssuer, grants: Grants, request: web.Request) -> web.Response:
    issue = FacebookIssue.of(loads_request(await request.read()))
    person = issue.profile
    if issue.limited:
        access_token = tokens.token(issue, name=person.name, email=person.email, picture=person.avatar)
    else:
        access_token = grants.issue(issue)
    expires = int(time.time()) - issue.age_s + issue.expires_in
    answer = {"id": issue.subject, "access_token": access_token, "expiration_date": expires}
    return web.Response(body=dumps(answer), content_type="application/json")


async def _debug_token(grants: Grants, call: Call) -> None:
    query = call.request.query
    app, _, secret = query.get("access_token", "").partition("|")
    if secret != SECRET:
        raise _APP_REFUSED
    try:
        grant = await grants.holder(call, query.get("input_token", ""))
    except Refusal as refusal:
        raise (_invalid("unknown") if refusal.body == _refusal("unknown").body else refusal) from None
    call.record(app=app)
    expires = int(grant.issued_at) + grant.issue.expires_in
    data: dict[str, Any] = {
        "app_id": grant.issue.app,
        "type": "USER",
        "application": "Sandbox",
        "expires_at": expires,
        "is_valid": True,
        "issued_at": int(grant.issued_at),
        "scopes": ["public_profile", "email"],
        "user_id": grant.issue.subject,
    }
    await call.answer({"data": {**data, **grant.issue.extra}}, empty={})


async def _me(grants: Grants, call: Call) -> None:
    query = call.request.query
    access_token = query.get("access_token", "")
    grant = await grants.holder(call, access_token)
    proof = hmac.new(SECRET.encode(), access_token.encode(), hashlib.sha256).hexdigest()
    if query.get("appsecret_proof") != proof:
        raise _NOT_PROVEN
    person = grant.issue.profile
    picture = {"url": person.avatar, "is_silhouette": not person.avatar, "height": 200, "width": 200}
    value = {"id": grant.issue.subject, "name": person.name, "email": person.email, "picture": {"data": picture}}
    asked = {field.partition(".")[0] for field in query.get("fields", "id,name").split(",")}
    await call.answer({name: value[name] for name in value if name in asked}, empty={})
