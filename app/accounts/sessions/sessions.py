"""The endpoints that list the sessions of a user and end single ones."""

from typing import Annotated

from pydantic import AfterValidator

from app.accounts.sessions.caller_lock import lock_caller
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Path
from storage.accounts import bp_auth, sessions
from storage.accounts.sessions import SESSION, ListedSession, SessionNotFound, listed_sessions
from storage.configs.kinds.auth import AUTH
from streams.wire.codec import rfc3339
from streams.wire.model import Model


class SessionPath(Model):
    session_id: Annotated[str, AfterValidator(SESSION.validate)]
    """A session of the user."""


class ListedSessionView(Model):
    session_id: str
    """Identifies the session, but cannot be used as its token."""
    current: bool
    """Whether the request was made with this session."""
    login_platform: str
    """The platform of the login that created it."""
    os: str
    """The operating system that the client named; empty if it named none."""
    user_agent: str
    address: str
    """The client's IP address at the login. Empty, like the user agent, if an app's server created the session."""
    created_at: str
    last_seen_at: str
    """Accurate to the hour."""
    expires_at: str


class SessionList(Model):
    """The sessions of the user."""

    sessions: list[ListedSessionView]


async def list_sessions(call: Call) -> SessionList:
    """List the sessions of the user.

    The newest comes first.
    """
    return SessionList(sessions=[_view(session, current=call.caller.session_id) for session in await _listed(call)])


async def end_session(call: Call, path: Path[SessionPath]) -> None:
    """End a session of the user.

    It ends immediately. The streams that it has started end too, and each `bp_auth` of its identity is revoked.
    """
    found = await _listed(call, session_id=path.session_id)
    if not found:
        raise SessionNotFound(path.session_id)
    async with call.services.database.transaction() as conn:
        await lock_caller(call, conn)
        await sessions.end(
            conn,
            call.app_id,
            call.caller.user,
            cache=call.services.sessions,
            now=call.services.clock.now(call.app_id),
            digest=found[0].digest,
        )
        await bp_auth.revoke_of_session(conn, call.app_id, session_id=found[0].digest)


async def _listed(call: Call, *, session_id: str | None = None) -> list[ListedSession]:
    config = call.services.configs.singleton(AUTH, call.app_id)
    async with call.services.database.connection() as conn:
        return await listed_sessions(
            conn,
            call.app_id,
            call.caller.user,
            now=call.services.clock.now(call.app_id),
            sliding_s=config.session_sliding_s,
            session_id=session_id,
        )


def _view(session: ListedSession, *, current: str | None) -> ListedSessionView:
    return ListedSessionView(
        session_id=session.session_id,
        current=session.digest == current,
        login_platform=session.platform,
        os=session.client_os,
        user_agent=session.user_agent,
        address=session.address,
        created_at=rfc3339(session.create_time),
        last_seen_at=rfc3339(session.last_seen),
        expires_at=rfc3339(session.expire_time),
    )
