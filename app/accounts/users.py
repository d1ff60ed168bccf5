"""Get user (§4.5)."""

from app.accounts.views import UserReply, user_view
from app.http.endpoint import Call
from storage import users
from streams.wire.errors import ServiceError


async def get_user(call: Call) -> UserReply:
    """Read the user."""
    async with call.services.database.connection() as conn:
        user = await users.find(conn, call.caller.user, app_id=call.app_id)
    if user is None:
        raise ServiceError("user does not exist", error_type="not_found")
    return UserReply(user=user_view(user))
