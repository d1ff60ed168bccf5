"""Logout: the session ends on every node (§4.2)."""

from datetime import UTC, datetime

from app.http.endpoint import Call
from storage import sessions


async def logout(call: Call) -> None:
    """End the session."""
    session_id = call.caller.session_id
    assert session_id is not None, "the endpoint's access grants a session"
    async with call.services.database.transaction() as conn:
        ended = await sessions.revoke(conn, session_id, app_id=call.app_id, now=datetime.now(UTC))
        await call.services.sessions.tombstone(call.app_id, ended)
