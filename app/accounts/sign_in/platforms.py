"""The sign-in platforms (§2.2): one field of `Platforms` and one row of `PLATFORMS` for each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.accounts.email.login import (
    EmailCode,
    EmailPassword,
    claimed_address,
    prove_email_code,
    prove_email_password,
)
from app.accounts.passwords.name_password import NamePassword, claimed_name, prove_name_password
from app.accounts.phone.phone import PhoneCode, claimed_number, prove_phone
from app.accounts.proofs.infos import (
    AccessTokenInfo,
    Anonymity,
    AppleInfo,
    CodeInfo,
    Device,
    GameCenterInfo,
    Identifiers,
    IdTokenInfo,
    OpenIdInfo,
    PlayerInfo,
    SocialNetworkInfo,
    SoftwareVendorInfo,
)
from app.accounts.proofs.proofs import Prove, local, prove_bp_auth
from app.accounts.proofs.third_party import third_party
from app.http.rows.endpoint import Call
from storage.configs.kinds.sign_in import PLATFORMS as THIRD_PARTIES
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model


class Platforms(Model):
    """Exactly one of these must be given."""

    anonymity: Anonymity | None = None
    device: Device | None = None
    ios_vendor_id: AppleInfo | None = None
    social_network_a: SocialNetworkInfo | None = None
    search_vendor_id: IdTokenInfo | None = None
    photo_network: CodeInfo | None = None
    microblog: AccessTokenInfo | None = None
    chat_network: AccessTokenInfo | None = None
    im_network_a: OpenIdInfo | None = None
    im_network_b: CodeInfo | None = None
    payment_wallet_a: CodeInfo | None = None
    software_vendor_id: SoftwareVendorInfo | None = None
    retail_platform: CodeInfo | None = None
    phone: PhoneCode | None = None
    name_password: NamePassword | None = None
    email_password: EmailPassword | None = None
    email_code: EmailCode | None = None
    bp_auth_token: str | None = None
    """A `bp_auth` from an earlier response."""
    android_games_service: PlayerInfo | None = None
    ios_games_service: GameCenterInfo | None = None


class PlatformBody(Platforms, Identifiers):
    """One platform and the identifier block, as in logins and binds."""


_CLAIMED = ("team_player_id", "player_id", "open_id", "id")


def _no_id(_call: Call, _info: object) -> str:
    return ""


def _sent_id(_call: Call, info: object) -> str:
    """Return the third-party id that a client sends together with its proof."""
    found = (getattr(info, name, None) for name in _CLAIMED)
    claimed = next((value for value in found if isinstance(value, str) and value), "")
    return claimed if claimed.isprintable() else ""


@dataclass(frozen=True, slots=True)
class Platform:
    prove: Prove
    """Checks the value of the platform in a request."""
    claimed: Callable[[Call, Any], str] = _no_id
    """Returns the id in this value, in the form that identities have. Empty if no user can have the id, or if it is
    secret."""
    third_party: bool = False
    """Whether its identities are shown as social accounts and can be bound. Users can log in with them."""


PLATFORMS: dict[str, Platform] = {
    "anonymity": Platform(local("anonymity")),
    "device": Platform(local("device")),
    **{name: Platform(third_party(name), _sent_id, third_party=True) for name in THIRD_PARTIES},
    "phone": Platform(prove_phone, claimed_number),
    "name_password": Platform(prove_name_password, claimed_name),
    "email_password": Platform(prove_email_password, claimed_address),
    "email_code": Platform(prove_email_code, claimed_address),
    "bp_auth_token": Platform(prove_bp_auth),
}


def platform_of(body: Platforms, *, for_bind: bool = False) -> tuple[str, Any]:
    """Return the name of the platform in `body`, which has a row, and its value.

    `for_bind`: the platform must be a third-party platform. Raises `InvalidParameter`.
    """
    names = [name for name in Platforms.model_fields if getattr(body, name) is not None]
    if len(names) > 1:
        raise InvalidParameter(f"exactly one platform must be given, not {' and '.join(names)}")
    if not names:
        accepted = THIRD_PARTIES if for_bind else PLATFORMS
        raise InvalidParameter(f"a platform is required: one of {', '.join(accepted)}")
    platform = names[0]
    if for_bind and not PLATFORMS[platform].third_party:
        raise InvalidParameter(f"{platform} cannot be bound")
    return platform, getattr(body, platform)
