"""The sandbox's Apple: id tokens, codes that are redeemed with a signed secret, and tokens that are revoked."""

from functools import partial
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from streams.wire.codec import dumps, loads_request
from vendors.sandbox.calls import Call
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import Grants, form
from vendors.sandbox.signin.id_tokens import IdTokenIssue, IdTokenIssuer
from vendors.sandbox.signin.oauth import oauth_dialect, oauth_error, oauth_refusal

APP_PRIVATE_KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgo8rIJptPura9YU0l
F9/+bTGK3FVowjqt+9Teq+TaLgyhRANCAAQOvpZkTB4ktbHN+Zg2bjVvcltiePS/
2HDnA5b01Mp23N754jFxejtXRYcX0Tc+s30r2wQA0wei9hWwj1WNSuif
-----END PRIVATE KEY-----
"""
"""The `private_key` of configs. It is public, and only the sandbox accepts it."""
TEAM_ID, KEY_ID = "SANDBOXTEAM", "SANDBOXKEY"

_ISSUER = "https://appleid.apple.com"
_SECRET_S = 15_777_000
_DIALECT = oauth_dialect("apple")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    tokens, grants = IdTokenIssuer(_ISSUER), Grants("apple", oauth_refusal, proof="code")
    return [
        web.post("/apple/_issue", partial(_issue, tokens, grants)),
        tokens.route(sandbox, "/apple/auth/keys", _DIALECT),
        sandbox.post("/apple/auth/token", _DIALECT, "token", partial(_token, tokens, grants)),
        sandbox.post("/apple/auth/revoke", _DIALECT, "revoke", _revoke),
    ]


async def _issue(tokens: IdTokenIssuer, grants: Grants, request: web.Request) -> web.Response:
    issue = IdTokenIssue.of(loads_request(await request.read()))
    code = grants.issue(issue)
    answer = {"id": issue.subject, "code": code, "identity_token": _id_token(tokens, issue)}
    return web.Response(body=dumps(answer), content_type="application/json")


def _id_token(tokens: IdTokenIssuer, issue: IdTokenIssue) -> str:
    person = issue.profile
    return tokens.token(
        issue,
        email=person.email,
        email_verified="true" if person.email_verified else "false",
        is_private_email="false",
        nonce_supported=True,
        real_user_status=2,
    )


async def _token(tokens: IdTokenIssuer, grants: Grants, call: Call) -> None:
    fields = await form(call)
    if fields.get("grant_type") != "authorization_code":
        raise oauth_error(400, "unsupported_grant_type")
    app = _require_app(fields.get("client_id", ""), fields.get("client_secret", ""))
    call.record(client_id=app, redirect_uri=fields.get("redirect_uri"))
    grant, access_token = await grants.redeem(call, fields.get("code", ""), app=app)
    assert isinstance(grant.issue, IdTokenIssue), "issued above"
    value = {
        "access_token": access_token,
        "token_type": "Bearer",
        "expires_in": grant.issue.expires_in,
        "refresh_token": f"refresh-{access_token}",
        "id_token": _id_token(tokens, grant.issue.model_copy(update={"token_fault": ""})),
    }
    await call.answer({**value, **grant.issue.extra}, empty={})


async def _revoke(call: Call) -> None:
    fields = await form(call)
    app = _require_app(fields.get("client_id", ""), fields.get("client_secret", ""))
    if fields.get("token_type_hint", "") not in {"", "access_token", "refresh_token"}:
        raise oauth_error(400, "invalid_request")
    call.record(client_id=app, token=fields.get("token"))
    await call.answer(b"", empty=b"")


def _require_app(client_id: str, secret: str) -> str:
    """Return the app whose secret is a token that its key has signed. Raise `Refusal` if it is not valid."""
    key = load_pem_private_key(APP_PRIVATE_KEY.encode(), None)
    assert isinstance(key, EllipticCurvePrivateKey), "written so above"
    try:
        checks: Any = {"audience": _ISSUER, "issuer": TEAM_ID, "subject": client_id}
        claims = jwt.decode(secret, key.public_key(), ["ES256"], **checks)
        if claims["exp"] - claims["iat"] > _SECRET_S or jwt.get_unverified_header(secret).get("kid") != KEY_ID:
            raise oauth_error(400, "invalid_client")
    except (jwt.InvalidTokenError, KeyError):
        raise oauth_error(400, "invalid_client") from None
    return client_id
