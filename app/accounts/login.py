"""The login endpoint: creates a session for the user of a platform identity (§4.1)."""

from datetime import datetime, timedelta

from app.accounts.platforms import Identifiers, Platforms, platform_of
from app.accounts.views import UserReply, user_view
from app.http import limits
from app.http.endpoint import Call
from app.http.errors import DeactivationPending
from app.http.inputs import Body
from storage import identities, sessions, users
from storage.identities import Identity
from storage.kinds.auth import AUTH, Auth
from storage.postgres import Connection
from storage.session_tokens import digest, new_token
from storage.sessions import SessionCache
from storage.users import User
from streams.wire.errors import InvalidParameter, ServiceError, Unavailable
from streams.wire.ids import new_id

_KEEP_EXPIRED = timedelta(days=7)


class AnonymousLoginNotAllowed(ServiceError):
    """The app does not allow anonymous login."""

    error_type = "anonymous_login_not_allowed"
    status = 400


class LoginBody(Platforms, Identifiers):
    pass


async def login(call: Call, body: Body[LoginBody]) -> UserReply:
    """Log in.

    The body names exactly one platform. If its identity is unknown, a new user is created.
    """
    identity = _identity(call.app_id, body)
    config = call.services.configs.singleton(AUTH, call.app_id)
    if not config.anonymous_login:
        raise AnonymousLoginNotAllowed("this app does not allow anonymous login")
    async with call.services.database.connection() as conn:
        known = await identities.user_of(conn, identity) is not None
    if not known:
        await limits.check_address(call.services, call.app_limits, call.request, call.caller, name="signup")
    token, now = new_token(), call.services.clock.now(call.app_id)
    async with call.services.database.transaction() as conn:
        user, is_new = await _find_or_create_user(conn, identity, now=now, cuid=body.cuid)
        await _begin_session(
            conn, identity, user, cache=call.services.sessions, token=token, now=now, config=config
        )
    call.logged_in(user.uid)
    return UserReply(user=user_view(user, is_new_user=is_new, session_token=token))


def _identity(app_id: str, body: LoginBody) -> Identity:
    platform, info = platform_of(body)
    if body.device and body.login_device_id not in {None, body.device.id}:
        raise InvalidParameter("login_device_id must equal device.id")
    return Identity(app_id=app_id, platform=platform, social_id=info.social_id)


async def _find_or_create_user(
    conn: Connection, identity: Identity, *, now: datetime, cuid: str | None
) -> tuple[User, bool]:
    """Return the user of `identity`, created if necessary, and whether it is new.

    The row of the user is locked until the end of the transaction.
    """
    is_new = await identities.add_user(conn, identity, uid=new_id(), now=now)
    uid = await identities.user_of(conn, identity)
    user = uid and await users.enter(conn, identity.app_id, uid, now=now, cuid=cuid)
    if not user:
        raise Unavailable("the account changed during the login")
    if user.status == "frozen":
        raise DeactivationPending(user, now=now)
    return user, is_new


async def _begin_session(
    conn: Connection,
    identity: Identity,
    user: User,
    *,
    cache: SessionCache,
    token: str,
    now: datetime,
    config: Auth,
) -> None:
    """Create a session, and end the oldest ones over the limit."""
    app_id = identity.app_id
    await sessions.add(
        conn,
        identity,
        uid=user.uid,
        digest=digest(token),
        now=now,
        absolute_s=config.session_absolute_s,
    )
    await sessions.delete_dead(conn, app_id, user.uid, before=now - _KEEP_EXPIRED)
    await sessions.end(conn, app_id, user.uid, cache=cache, now=now, keep_newest=config.sessions_per_user)
