"""The sandbox's WeChat mini programs: codes of `wx.login`."""

from functools import partial
from secrets import token_urlsafe

from aiohttp import web

from vendors.sandbox.calls import Call
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import Grants, dialect
from vendors.sandbox.signin.wechat import BUSY, DENIED, LIMITED, PLAIN, error, refusal

_DIALECT = dialect("wechat_mini", busy=BUSY, limited=LIMITED, denied=DENIED)


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    grants = Grants("wechat_mini", refusal, proof="code")
    path = "/wechat_mini/sns/jscode2session"
    return [grants.route(), sandbox.get(path, _DIALECT, "token", partial(_session, grants))]


async def _session(grants: Grants, call: Call) -> None:
    query = call.request.query
    if query.get("grant_type") != "authorization_code":
        raise error(40002, "invalid grant_type")
    app, secret = query.get("appid", ""), query.get("secret", "")
    grant, _ = await grants.redeem(call, query.get("js_code", ""), app=app, secret=secret)
    ids = {"openid": grant.issue.subject, "unionid": f"union-{grant.issue.subject}"}
    value = {**ids, "session_key": token_urlsafe(16), **grant.issue.extra}
    await call.answer(value, empty={}, content_type=PLAIN)
