"""The logout endpoint: revokes the session on every server (§4.2)."""

from app.http.endpoint import Call
from storage import sessions


async def logout(call: Call) -> None:
    """Log out.

    The session ends at once.
    """
    session_id = call.caller.session_id
    assert session_id is not None, "the access rule of the endpoint guarantees a session"
    async with call.services.database.transaction() as conn:
        revoked = await sessions.revoke(
            conn, session_id, app_id=call.app_id, now=call.services.clock.now(call.app_id)
        )
        await call.services.sessions.tombstone(call.app_id, revoked)
