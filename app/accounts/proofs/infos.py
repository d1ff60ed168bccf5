"""Models of the identifier block (§2.1), and of the proofs of identities that clients send (§2.2)."""

from base64 import b64decode
from typing import Annotated, Protocol

from pydantic import AfterValidator, BeforeValidator, Field

from streams.wire.model import Matches, Model
from streams.wire.typed import trimmed

Identifier = Annotated[str, Field(max_length=256)]


def _trimmed(value: object) -> object:
    return trimmed(value) if isinstance(value, str) else value


def _base64(value: str) -> str:
    """Return base64 without the line breaks that libraries insert. Raise `ValueError` for any other text."""
    plain = "".join(value.split())
    try:
        b64decode(plain, validate=True)
    except ValueError:
        raise ValueError("must be base64") from None
    return plain


_VISIBLE = Matches(r"^[!-~]*$", "must have only visible ASCII characters, without blanks")
"""What platforms issue. No platform is asked about any other text. So this is a mistake in the request, and not a
proof that the platform refuses."""

Token = Annotated[str, BeforeValidator(_trimmed), Field(min_length=1, max_length=16 * 1024), _VISIBLE]
"""A token or a code of a platform."""
TrimmedId = Annotated[str, BeforeValidator(_trimmed), Field(max_length=256)]
"""An id that is compared with the platform's."""
PlayerId = Annotated[TrimmedId, _VISIBLE]
Base64 = Annotated[str, AfterValidator(_base64)]


def _whole(value: object) -> object:
    """Return integers of more than 64 bits, which the decoder turns into floats, as integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


AnyInteger = Annotated[int, BeforeValidator(_whole)]


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


SocialId = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_not_blank)]


class Identifiers(Model):
    """The identifier block: identifiers that the client has for its app, user and device."""

    segment_id: Identifier | None = None
    custom_config_id: Identifier | None = None
    login_device_id: Identifier | None = None
    """Must equal `device.id` if both are given."""
    simple_cuid: Identifier | None = None
    cuid_v2: Identifier | None = None
    cuid: Identifier | None = None
    imei: Identifier | None = None
    oaid: Identifier | None = None
    idfa: Identifier | None = None
    idfv: Identifier | None = None
    gaid: Identifier | None = None
    platform: Identifier | None = None
    """The client's operating system, such as `ios`, and not a sign-in platform."""
    appsflyer_id: Identifier | None = None
    app_instance_id: Identifier | None = None
    uuid: Identifier | None = None


class LocalInfo(Protocol):
    """An identity that only the client knows."""

    @property
    def social_id(self) -> str: ...


class Anonymity(Model):
    local_uid: SocialId

    @property
    def social_id(self) -> str:
        return self.local_uid


class Device(Model):
    id: SocialId

    @property
    def social_id(self) -> str:
        return self.id


class AppleInfo(Model):
    """A sign-in with the platform of a mobile operating system."""

    id: TrimmedId | None = None
    """Must be the subject of `identity_token` if it is given."""
    code: Token | None = None
    """An authorization code. It is exchanged for a refresh token."""
    identity_token: Token
    nonce: Identifier | None = None
    """If it is given, the claim `nonce` of `identity_token` must be it or its SHA-256 in hexadecimal."""


class SocialNetworkInfo(Model):
    access_token: Token
    id: TrimmedId | None = None
    """Must be the user of `access_token` if it is given."""
    expiration_date: AnyInteger | None = None
    """Unix seconds at which `access_token` expires, as the client's library has it. It is not used: the platform
    says when the token expires."""
    nonce: Identifier | None = None
    """If it is given and `access_token` is an id token, the claim `nonce` must be it or its SHA-256 in
    hexadecimal."""


class IdTokenInfo(Model):
    id_token: Token
    nonce: Identifier | None = None
    """If it is given, the claim `nonce` of `id_token` must be it or its SHA-256 in hexadecimal."""


class CodeInfo(Model):
    code: Token


class AccessTokenInfo(Model):
    access_token: Token


class OpenIdInfo(Model):
    access_token: Token
    open_id: TrimmedId
    """Must be the user of `access_token`."""


class SoftwareVendorInfo(Model):
    access_token: Token
    """An id token, or an access token that is a JWT and was issued to the app."""
    nonce: Identifier | None = None
    """If it is given and `access_token` is an id token, the claim `nonce` must be it or its SHA-256 in
    hexadecimal."""


class PlayerInfo(Model):
    player_id: Annotated[PlayerId, Field(min_length=1)]


class GameCenterInfo(Model):
    """At least one of `player_id` and `team_player_id` is required.

    `public_key_url`, `salt`, `signature` and `timestamp` are required unless the app's config skips the
    verification.
    """

    player_id: PlayerId | None = None
    team_player_id: PlayerId | None = None
    """Takes precedence over `player_id`."""
    public_key_url: Annotated[str, Field(max_length=2048)] | None = None
    salt: Annotated[Base64, Field(max_length=2048)] | None = None
    """In base64."""
    signature: Annotated[Base64, Field(max_length=4096)] | None = None
    """In base64."""
    timestamp: int = Field(default=0, ge=0, le=2**63 - 1)
    """Unix milliseconds."""
