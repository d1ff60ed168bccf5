"""JSON representation of users (§2.3, §2.4)."""

from pydantic import Field

from storage.users import User
from streams.wire.model import Model


class SocialAccount(Model):
    """An identity at a third party.

    Device and anonymous ids are never shown, because everybody who knows one can log in with it.
    """

    platform: str
    id: str


class SessionView(Model):
    session_token: str
    """The value for `X-Service-Session-Token`. It is not shown again."""


class UserView(Model):
    uid: str
    create_time: int
    """Unix seconds."""
    name: str
    """Empty until the user has a name."""
    is_new_user: bool
    """Whether this call created the user."""
    cuid: str
    """The `cuid` of the last login that sent one; empty if none did."""
    social_accounts: list[SocialAccount] = Field(default_factory=list)
    session: SessionView | None = None
    """Only in responses to login and signup."""


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
