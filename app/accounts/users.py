"""The endpoint that reads a user (§4.5)."""

from app.accounts.views import UserReply, user_view
from app.http.endpoint import Call
from streams.wire.errors import NotFound


class AccountNotFound(NotFound):
    """The user does not exist."""


async def get_user(call: Call) -> UserReply:
    """Read the user."""
    user = await call.find_user()
    if user is None:
        raise AccountNotFound("user does not exist")
    return UserReply(user=user_view(user))
