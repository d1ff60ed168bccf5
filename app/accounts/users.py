"""The endpoint that reads a user (§4.5)."""

from app.accounts.views import UserReply, user_view
from app.http.endpoint import Call
from streams.wire.errors import ServiceError


async def get_user(call: Call) -> UserReply:
    """Read the user."""
    user = await call.find_user()
    if user is None:
        raise ServiceError("user does not exist", error_type="not_found")
    return UserReply(user=user_view(user))
