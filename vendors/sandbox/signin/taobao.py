"""The sandbox's Taobao: codes. Their responses contain the URL-encoded name of the person."""

from functools import partial
from typing import Any
from urllib.parse import quote

from aiohttp import web

from vendors.sandbox.calls import Call
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import REDIRECT_URI, Grants, form
from vendors.sandbox.signin.oauth import oauth_dialect, oauth_error, oauth_refusal

_DIALECT = oauth_dialect("taobao")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("taobao", oauth_refusal, proof="code")
    return [grants.route(), sandbox.post("/taobao/token", _DIALECT, "token", partial(_token, grants))]


async def _token(grants: Grants, call: Call) -> None:
    fields = await form(call)
    if fields.get("grant_type") != "authorization_code" or fields.get("redirect_uri") != REDIRECT_URI:
        raise oauth_error(400, "invalid_request")
    app, secret = fields.get("client_id", ""), fields.get("client_secret", "")
    grant, access_token = await grants.redeem(call, fields.get("code", ""), app=app, secret=secret)
    value: dict[str, Any] = {
        "access_token": access_token,
        "token_type": "Bearer",
        "expires_in": grant.issue.expires_in,
        "refresh_token": f"refresh-{access_token}",
        "taobao_user_id": grant.issue.subject,
        "taobao_user_nick": quote(grant.issue.profile.name),
        "taobao_open_uid": f"AAE{grant.issue.subject}",
    }
    await call.answer({**value, **grant.issue.extra}, empty={})
