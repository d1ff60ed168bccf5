"""Who may call an endpoint, and who does."""

from dataclasses import dataclass
from enum import Enum


class Access(Enum):
    """What an endpoint asks of a C2S caller (§5). On a `/bp/server/…` path a server token takes its place."""

    PUBLIC = "public"
    """Nothing: health, docs, links in mails."""
    SIGNED = "signed"
    """`X-Service-Sign` alone."""
    SESSION = "session"
    """`X-Service-Sign` and `X-Service-Session-Token`."""
    ADMIN = "admin"
    """The operator's bearer token."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`user_id` is whose data the call is about: the session's user, or the one in an S2S path."""

    app_id: str
    user_id: str | None = None
    session_id: str | None = None
    """Digest of the session token, where one was given."""
    server_key: str | None = None
    """`kid` of the server token, on S2S calls."""
    must_sign: bool = False
    """Whether the body's signature has still to be checked."""
    frozen: bool = False
    """Whether the account waits for its deactivation."""

    @property
    def user(self) -> str:
        assert self.user_id is not None, "the endpoint's access grants a user"
        return self.user_id
