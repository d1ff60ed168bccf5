"""The sandbox's Google: id tokens. Its speech is in `vendors/sandbox/google/google.py`."""

from functools import partial

from aiohttp import web

from streams.wire.codec import dumps, loads_request
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.id_tokens import IdTokenIssue, IdTokenIssuer
from vendors.sandbox.signin.oauth import oauth_dialect

_ISSUER = "https://accounts.google.com"
_DIALECT = oauth_dialect("google_sign_in")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    tokens = IdTokenIssuer(_ISSUER)
    return [
        web.post("/google/_issue", partial(_issue, tokens)),
        tokens.route(sandbox, "/google/oauth2/v3/certs", _DIALECT),
    ]


async def _issue(tokens: IdTokenIssuer, request: web.Request) -> web.Response:
    issue = IdTokenIssue.of(loads_request(await request.read()))
    person = issue.profile
    given_name, _, family_name = person.name.partition(" ")
    id_token = tokens.token(
        issue,
        azp=issue.app,
        email=person.email,
        email_verified=person.email_verified,
        name=person.name,
        given_name=given_name,
        family_name=family_name,
        picture=person.avatar,
    )
    return web.Response(body=dumps({"id_token": id_token}), content_type="application/json")
