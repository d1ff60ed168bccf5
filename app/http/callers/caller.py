"""The access rule of an endpoint and the authenticated caller of a request."""

from enum import Enum
from typing import NamedTuple

from storage.operators.operators import Operator


class Access(Enum):
    """The authentication of an endpoint's C2S callers (§5). `/bp/server/…` paths require a server token instead."""

    PUBLIC = "public"
    """No authentication: health checks, the reference, signed links."""
    SIGNED = "signed"
    """`X-Service-Sign` only."""
    SESSION = "session"
    """`X-Service-Sign` and `X-Service-Session-Token`."""
    ADMIN = "admin"
    """The bearer token of an operator, or the root token."""
    WEBHOOK = "webhook"
    """None of these. The path names the app, and the handler verifies the request of the platform."""


class Caller(NamedTuple):
    """The authenticated caller of a request."""

    app_id: str
    user_id: str | None = None
    """The user whose data the call is about: the user of the session or of the S2S path."""
    session_id: str | None = None
    """Digest of the session token, if one was sent."""
    server_key: str | None = None
    """`kid` of the server token, on S2S calls."""
    only_user: bool = False
    """Whether the server token has a `sub`: it may be used for the data of `user_id` only."""
    must_sign: bool = False
    """Whether the signature of the body remains to be checked."""
    frozen: bool = False
    """Whether the account is frozen until its deactivation."""
    operator: Operator | None = None
    """The operator that calls the admin API. `None` for the root token, too."""

    @property
    def user(self) -> str:
        assert self.user_id is not None, "the access rule of the endpoint guarantees a user"
        return self.user_id
