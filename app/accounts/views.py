"""Users as the wire shows them (§2.3, §2.4)."""

from pydantic import Field

from storage.users import User
from streams.wire.model import Model


class SocialAccount(Model):
    """An identity at a third party. Devices and anonymous ids are none: whoever knows one can log in."""

    platform: str
    id: str


class SessionView(Model):
    session_token: str
    """For `X-Service-Session-Token`. It is shown this once."""


class UserView(Model):
    uid: str
    create_time: int
    """Unix seconds."""
    name: str
    """Empty until the user has one."""
    is_new_user: bool
    """Whether this call made the user."""
    cuid: str
    """The last that a login gave; empty when none did."""
    social_accounts: list[SocialAccount] = Field(default_factory=list)
    session: SessionView | None = None
    """In answers of login and signup alone."""


class UserReply(Model):
    user: UserView


def user_view(user: User, *, is_new_user: bool = False, session_token: str | None = None) -> UserView:
    return UserView(
        uid=user.uid,
        create_time=int(user.create_time.timestamp()),
        name=user.name,
        is_new_user=is_new_user,
        cuid=user.cuid,
        session=None if session_token is None else SessionView(session_token=session_token),
    )
