"""Models of a login request (§2.1, §2.2): the identifier block and one platform.

A platform is supported if its field has a model with a `social_id`.
"""

from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, Field

from streams.wire.errors import ConfigInvalid, InvalidParameter
from streams.wire.model import Model

Identifier = Annotated[str, Field(max_length=256)]


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


SocialId = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_not_blank)]


class PlatformInfo(Protocol):
    """The object of a platform in a login request."""

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
    """The client's operating system, such as `ios`."""
    appsflyer_id: Identifier | None = None
    app_instance_id: Identifier | None = None
    uuid: Identifier | None = None


class Platforms(Model):
    """Exactly one of these must be given. This server does not support those without a type."""

    anonymity: Anonymity | None = None
    device: Device | None = None
    ios_vendor_id: Any = None
    social_network_a: Any = None
    search_vendor_id: Any = None
    photo_network: Any = None
    microblog: Any = None
    chat_network: Any = None
    im_network_a: Any = None
    im_network_b: Any = None
    payment_wallet_a: Any = None
    software_vendor_id: Any = None
    retail_platform: Any = None
    phone: Any = None
    name_password: Any = None
    email_password: Any = None
    email_code: Any = None
    bp_auth_token: Any = None
    android_games_service: Any = None
    ios_games_service: Any = None


SUPPORTED = ("anonymity", "device")


def platform_of(body: Platforms) -> tuple[str, PlatformInfo]:
    """Return the name of the platform in `body`, and its object."""
    names = [name for name in Platforms.model_fields if getattr(body, name) is not None]
    if len(names) > 1:
        raise InvalidParameter(f"exactly one platform must be given, not {' and '.join(names)}")
    if not names:
        raise InvalidParameter(f"a platform is required: one of {', '.join(SUPPORTED)}")
    platform = names[0]
    if platform not in SUPPORTED:
        raise ConfigInvalid(f"platform {platform} is not configured")
    info: PlatformInfo = getattr(body, platform)
    return platform, info
