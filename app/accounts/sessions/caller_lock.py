"""The lock that precedes every change of an account by its user, or by an app's server for the user."""

from app.http.errors import DeactivationPending, UserNotFound
from app.http.rows.endpoint import Call
from storage.accounts import users
from storage.accounts.ended_sessions import SessionKey
from storage.accounts.sessions import not_ended
from storage.accounts.users import User
from storage.postgres.database import Connection
from streams.wire.errors import InvalidSession, listed


async def lock_caller(call: Call, conn: Connection) -> User:
    """Return the user of a call, locked. `conn` is in a transaction.

    Raises `InvalidSession` if the session has ended since the checks of the request: a client may send its body
    slowly, and a platform may answer late. The transactions that end sessions hold the same lock.

    Raises `DeactivationPending` if the account was frozen meanwhile, and the error of an unknown user if it was
    deactivated.
    """
    app_id, session_id, area = call.app_id, call.caller.session_id, call.endpoint.area
    user = await users.lock(conn, app_id, call.caller.user)
    if session_id is not None and not await not_ended(conn, [SessionKey(app_id, session_id)]):
        raise InvalidSession
    if user is None:
        missing = area.unknown_user_error or UserNotFound
        raise missing(f"user {listed([call.caller.user])} does not exist")
    if user.status == "frozen" and not area.frozen_allowed:
        raise DeactivationPending(user, now=call.services.clock.now(app_id))
    return user
