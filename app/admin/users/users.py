"""The user whom a path of the admin API names, and the ban of a user."""

from collections.abc import Awaitable, Callable

from app.admin.apps import require_app
from app.http.errors import UserNotFound
from app.http.rows.endpoint import Call
from storage.accounts import users
from storage.accounts.users import Ban, User
from storage.errors import UnknownApp
from storage.postgres.database import Connection
from streams.wire.codec import rfc3339
from streams.wire.errors import listed
from streams.wire.model import Model


class UserPath(Model):
    app: str
    """An app of this server."""
    user_id: str
    """A user of the app."""


class BanView(Model):
    since: str
    until: str | None = None
    """When the ban ends by itself. Absent: it has no end."""
    reason: str


def ban_view(ban: Ban | None) -> BanView | None:
    if ban is None:
        return None
    return BanView(
        since=rfc3339(ban.time), until=None if ban.until is None else rfc3339(ban.until), reason=ban.reason
    )


USER_ERRORS = (UnknownApp, UserNotFound)
"""The errors of `user_of`."""


async def user_of(
    call: Call,
    conn: Connection,
    path: UserPath,
    *,
    find: Callable[[Connection, str, str], Awaitable[User | None]] = users.find,
) -> User:
    """Return what `find` returns for the user of a path.

    By default, a deactivated user does not exist. Raises `UnknownApp` or `UserNotFound`.
    """
    require_app(call, path.app)
    if (user := await find(conn, path.app, path.user_id)) is None:
        raise UserNotFound(f"user {listed([path.user_id])} does not exist")
    return user
