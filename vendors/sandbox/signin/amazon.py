"""The sandbox's Login with Amazon: codes, information about access tokens, and profiles."""

import time
from functools import partial

from aiohttp import web

from vendors.sandbox.calls import Call
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import REDIRECT_URI, Grants, bearer, form
from vendors.sandbox.signin.oauth import oauth_dialect, oauth_error, oauth_refusal

_DIALECT = oauth_dialect("amazon")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("amazon", oauth_refusal, proof="code")
    return [
        grants.route(),
        sandbox.post("/amazon/auth/o2/token", _DIALECT, "token", partial(_token, grants)),
        sandbox.get("/amazon/auth/o2/tokeninfo", _DIALECT, "check", partial(_token_info, grants)),
        sandbox.get("/amazon/user/profile", _DIALECT, "profile", partial(_profile, grants)),
    ]


async def _token(grants: Grants, call: Call) -> None:
    fields = await form(call)
    if fields.get("grant_type") != "authorization_code" or fields.get("redirect_uri") != REDIRECT_URI:
        raise oauth_error(400, "invalid_request")
    app, secret = fields.get("client_id", ""), fields.get("client_secret", "")
    grant, access_token = await grants.redeem(call, fields.get("code", ""), app=app, secret=secret)
    value = {
        "access_token": access_token,
        "token_type": "bearer",
        "expires_in": grant.issue.expires_in,
        "refresh_token": f"refresh-{access_token}",
    }
    await call.answer(value, empty={})


async def _token_info(grants: Grants, call: Call) -> None:
    grant = await grants.holder(call, call.request.query.get("access_token", ""))
    value = {
        "iss": "https://www.amazon.com",
        "user_id": grant.issue.subject,
        "aud": grant.issue.app,
        "app_id": "amzn1.application.sandbox",
        "exp": grant.left_s,
        "iat": int(time.time()),
    }
    await call.answer({**value, **grant.issue.extra}, empty={})


async def _profile(grants: Grants, call: Call) -> None:
    grant = await grants.holder(call, bearer(call))
    person = grant.issue.profile
    await call.answer({"user_id": grant.issue.subject, "name": person.name, "email": person.email}, empty={})
