"""Kind `events`: a sink to which events of an app are reported, which is a webhook or a Redis Stream."""

import base64
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.urls import SandboxUrl
from storage.configs.kinds.vendor_accounts import CallLimits
from streams.wire.model import Matches

EventName = Literal["email_operation", "purchase", "asset", "account"]

SECRET_PREFIX = "whsec_"  # noqa: S105 - what all such secrets begin with
_KEY_BYTES = range(24, 65)
"""The lengths that Standard Webhooks recommends."""


def key_of(secret: SecretStr) -> bytes:
    """Return the key of a secret in the format of Standard Webhooks. Raises `ValueError`."""
    return base64.b64decode(secret.get_secret_value().removeprefix(SECRET_PREFIX), validate=True)


def _is_key(secret: SecretStr) -> SecretStr:
    try:
        length = len(key_of(secret))
    except ValueError:
        length = 0
    if length not in _KEY_BYTES:
        raise ValueError("must be whsec_ and the Base64 form of 24 to 64 bytes")
    return secret


def _are_different(names: list[EventName]) -> list[EventName]:
    if len(set(names)) < len(names):
        raise ValueError("must not contain a name twice")
    return names


class Events(CallLimits):
    url: SandboxUrl | None = None
    """Where events are posted. Exactly one of `url` and `stream` is required. In development, `{sandbox}` stands
    for the address of the sandbox."""
    secret: Annotated[SecretStr, AfterValidator(_is_key)] | None = None
    """Signs the calls of `url`, as in Standard Webhooks: `whsec_` and the Base64 form of 24 to 64 random bytes."""
    stream: (
        Annotated[
            str, Matches(r"^[A-Za-z0-9_.:-]{1,128}$", "must be 1 to 128 letters, digits and the characters _.:-")
        ]
        | None
    ) = None
    """The Redis Stream in the server's Valkey to which events are added. Its key contains the app."""
    max_len: int = Field(default=100_000, ge=1, le=100_000_000)
    """About how many entries `stream` keeps. Older ones are deleted."""
    events: Annotated[list[EventName], Field(min_length=1, max_length=4), AfterValidator(_are_different)]
    """The events that are reported: `purchase`, `asset`, `account` and `email_operation`."""
    timeout_s: float = Field(default=10, ge=0.1, le=30)
    """Seconds within which a call must be answered."""
    concurrency: int = Field(default=10, ge=1, le=100)
    """Maximum number of concurrent calls. A worker sends the events of one user one after another."""

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        if (self.url is None) is (self.stream is None):
            raise ValueError("exactly one of url and stream is required")
        if self.url is not None and self.secret is None:
            raise ValueError("secret is required with url")
        return self


EVENTS = ConfigKind("events", "Event sink", Events, addresses=("url",))
