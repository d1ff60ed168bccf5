"""Kind `auth`: how callers of an app authenticate."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from storage.configs.kinds.base import DAY_S, ConfigKind
from streams.wire.model import Model

SIGN_KEY_BYTES = 16
"""Keys for signatures that are shorter can be guessed."""


class SignKey(Model):
    """A key for `X-Service-Sign`. Several keys may be active, so that they can be replaced without interruption."""

    id: str
    """Name of the key, for the operator."""
    key: SecretStr
    """The secret that clients sign with. It should have at least 16 bytes."""


class ServerKey(Model):
    """A key for `X-Service-Auth-Token`, valid for one algorithm."""

    kid: str
    """The `kid` in the header of tokens that are signed with this key."""
    alg: Literal["EdDSA", "ES256", "RS256", "HS256"]
    """The only algorithm that tokens with this key may use."""
    public_key: str | None = None
    """The public key in PEM format. For the asymmetric algorithms; RS256 needs at least 2,048 bits."""
    secret: SecretStr | None = None
    """The shared secret, at least 32 bytes. For HS256."""


class PasswordRules(Model):
    """What passwords an app accepts. They have at most 256 characters."""

    min_characters: int = Field(default=8, ge=8, le=64)
    """Minimum length of a new password."""
    refuse_common: bool = True
    """Whether the most common passwords are refused: a list of 11,611, and `common_passwords`."""


class Deactivation(Model):
    """What happens when a user deactivates the account."""

    freeze_s: int = Field(default=15 * DAY_S, ge=1, le=366 * DAY_S)
    """Seconds for which the account is frozen, and can be recovered, before it is deactivated."""


class Auth(Model):
    require_sign: bool = True
    """Whether requests of clients must carry a signature in `X-Service-Sign`."""
    require_nonce: bool = False
    """Whether signatures must contain a nonce."""
    sign_keys: list[SignKey] = Field(default_factory=list, max_length=100)
    """Keys of client apps. A signature by any of them is valid."""
    server_keys: list[ServerKey] = Field(default_factory=list, max_length=100)
    """Keys of app servers. Without a key, there are no server-to-server calls."""
    server_audience: str = "parley"
    """The required `aud` claim of server tokens."""
    server_token_max_s: int = Field(default=600, ge=1, le=3600)
    """Maximum lifetime of a server token in seconds."""
    session_sliding_s: int = Field(default=30 * DAY_S, ge=60, le=3660 * DAY_S)
    """Seconds without use after which a session expires."""
    session_absolute_s: int = Field(default=180 * DAY_S, ge=60, le=3660 * DAY_S)
    """Maximum lifetime of a session in seconds."""
    sessions_per_user: int = Field(default=10, ge=1, le=100)
    """Maximum number of sessions of a user. A further login ends the oldest session."""
    bp_auth_s: int = Field(default=600, ge=1, le=DAY_S)
    """Seconds for which a `bp_auth_token` can be used."""
    password: PasswordRules = PasswordRules()
    """Rules for new passwords."""
    common_passwords: list[Annotated[str, Field(min_length=1, max_length=256)]] = Field(
        default_factory=list, max_length=1000
    )
    """Further passwords that are refused as common, such as the name of the app with a number. Case is ignored."""
    anonymous_login: bool = True
    """Whether users may log in with the platforms `anonymity` and `device`."""
    deactivation: Deactivation = Deactivation()
    """The freeze of accounts."""


AUTH = ConfigKind("auth", "Sessions, signatures and server tokens", Auth, singleton=True)
