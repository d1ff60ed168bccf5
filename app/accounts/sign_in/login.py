"""The login endpoint: creates a session for the user of a platform identity (§4.1)."""

from functools import partial

from app.accounts.proofs.trace import LoginTrace
from app.accounts.sign_in.entry import log_in
from app.accounts.sign_in.platforms import PLATFORMS, PlatformBody, platform_of
from app.accounts.sign_in.views import LoginReply, bp_auth_view, user_view
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from streams.wire.errors import InvalidParameter


async def login(call: Call, body: Body[PlatformBody]) -> LoginReply:
    """Log in.

    The body names exactly one platform. If its identity is unknown, a new user is created, except for passwords.
    Third-party identities also get a `bp_auth`, which logs in once without a new authorization.
    """
    platform, info = platform_of(body)
    if body.device and body.login_device_id not in {None, body.device.id}:
        raise InvalidParameter("login_device_id must equal device.id")
    claimed = partial(PLATFORMS[platform].claimed, call, info)
    async with LoginTrace(call, "login", platform, claimed=claimed) as trace:
        proven = await PLATFORMS[platform].prove(call, info)
        trace.identify(proven.identity)
        entry = await log_in(call, proven, body)
    return LoginReply(
        user=user_view(entry.account, is_new_user=entry.is_new, session_token=entry.session_token),
        bp_auth=bp_auth_view(entry.bp_auth),
    )
