"""The sandbox's Microsoft: id tokens, and Graph with the access tokens of work accounts."""

from functools import partial
from typing import Literal

from aiohttp import web

from streams.wire.codec import dumps, loads_request
from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.garbled import garbled
from vendors.sandbox.signin.grants import bearer, dialect
from vendors.sandbox.signin.id_tokens import IdTokenIssue, IdTokenIssuer

_TENANT = "5f1c2c52-8a6e-4c4b-9d55-0a1a6a1c7e01"
_GRAPH = "00000003-0000-0000-c000-000000000000"


class MicrosoftIssue(IdTokenIssue):
    kind: Literal["id_token", "work", "opaque"] = "id_token"
    """`work`: the access token of a work account. `opaque`: the access token of a personal account."""
    tenant: str = _TENANT


def _error(status: int, code: str, message: str) -> Refusal:
    return Refusal(status, {"error": {"code": code, "message": message, "innerError": {"request-id": "4f2d"}}})


_DIALECT = dialect(
    "microsoft",
    busy=_error(503, "serviceNotAvailable", "The service is temporarily unavailable."),
    limited=Refusal(429, {"error": {"code": "TooManyRequests", "message": "Please retry."}}, {"Retry-After": "7"}),
    denied=_error(403, "Authorization_RequestDenied", "Insufficient privileges to complete the operation."),
)
_INVALID = _error(401, "InvalidAuthenticationToken", "Access token validation failure.")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    tokens = IdTokenIssuer(f"https://login.microsoftonline.com/{_TENANT}/v2.0")
    return [
        web.post("/microsoft/_issue", partial(_issue, tokens)),
        tokens.route(sandbox, "/microsoft/common/discovery/v2.0/keys", _DIALECT),
        sandbox.get("/microsoft/v1.0/me", _DIALECT, "profile", partial(_me, tokens)),
    ]


async def _issue(tokens: IdTokenIssuer, request: web.Request) -> web.Response:
    issue = MicrosoftIssue.of(loads_request(await request.read()))
    person = {"name": issue.profile.name, "oid": issue.subject, "tid": issue.tenant}
    match issue.kind:
        case "opaque":
            access_token = "EwB4A8l6BAAU-sandbox"  # noqa: S105 - of nobody
        case "work":
            email = issue.profile.email
            access_token = tokens.token(
                issue.model_copy(update={"garbling": ""}),
                **person,
                sandbox_garbling=issue.garbling,
                iss=f"https://sts.windows.net/{issue.tenant}/",
                aud=_GRAPH,
                appid=issue.app,
                upn=email,
                sub="pairwise",
            )
        case _:
            issuer = f"https://login.microsoftonline.com/{issue.tenant}/v2.0"
            email = issue.profile.email
            access_token = tokens.token(
                issue, **person, iss=issuer, sub="pairwise", preferred_username=email, email=email
            )
    return web.Response(body=dumps({"access_token": access_token}), content_type="application/json")


async def _me(tokens: IdTokenIssuer, call: Call) -> None:
    claims = tokens.claims(bearer(call))
    if claims is None or claims.get("aud") != _GRAPH:
        raise _INVALID
    value = {
        "@odata.context": "https://graph.microsoft.com/v1.0/$metadata#users/$entity",
        "id": claims.get("sandbox_id", claims["oid"]),  # A test may let Graph name another account.
        "displayName": claims["name"],
        "userPrincipalName": claims["upn"],
        "mail": claims["upn"],
    }
    if asked := call.request.query.get("$select"):
        value = {name: value[name] for name in value if name in asked.split(",")}
    call.garble = partial(garbled, garbling=claims["sandbox_garbling"], name=claims["name"])
    await call.answer(value, empty={})
