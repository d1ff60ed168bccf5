"""The logout endpoint (§4.2)."""

from app.accounts.sessions.caller_lock import lock_caller
from app.http.rows.endpoint import Call
from storage.accounts import bp_auth, sessions


async def logout(call: Call) -> None:
    """Log out.

    The session ends immediately. The streams that it has started end too, and each `bp_auth` of its identity is
    revoked.
    """
    session_id = call.caller.session_id
    assert session_id is not None, "the access rule of the endpoint guarantees a session"
    async with call.services.database.transaction() as conn:
        await lock_caller(call, conn)
        await sessions.end(
            conn,
            call.app_id,
            call.caller.user,
            cache=call.services.sessions,
            now=call.services.clock.now(call.app_id),
            digest=session_id,
        )
        await bp_auth.revoke_of_session(conn, call.app_id, session_id=session_id)
