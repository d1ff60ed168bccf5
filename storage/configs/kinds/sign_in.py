"""Kind `sign_in`: our app at a sign-in platform. The name of a config is a platform id of the interface (§2.2)."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.urls import BaseUrl, SandboxUrl
from storage.configs.kinds.vendor_accounts import CallLimits
from streams.wire.model import Matches

Provider = Literal[
    "apple",
    "google",
    "facebook",
    "instagram",
    "weibo",
    "qq",
    "wechat",
    "wechat_mini",
    "alipay",
    "microsoft",
    "jd",
    "taobao",
    "amazon",
    "line",
    "kakao",
    "play_games",
    "game_center",
]


_Host = Annotated[
    str,
    Field(max_length=253),
    Matches(r"^[a-z0-9.-]+$", "must be a host name in lower case, without a port"),
]
"""A host that is compared as text with the hosts in URLs of clients."""
_Id = Annotated[str, Field(min_length=1, max_length=512)]
Pem = Annotated[str, Field(max_length=16 * 1024)]


class SignIn(CallLimits):
    enabled: bool = True
    """Whether users may log in with the platform and bind it."""
    provider: Provider | None = None
    """The service behind the platform id. Default: the one that the id usually stands for."""
    audiences: list[_Id] = Field(default_factory=list, max_length=100)
    """The ids of our apps at the platform. Proofs that were issued to other apps are refused. Without an id, nobody
    can log in."""
    issuers: list[_Id] = Field(default_factory=list, max_length=100)
    """The accepted issuers of id tokens. Default: the issuers of the platform. An access token of Microsoft is
    accepted if one of them names its tenant."""
    jwks_url: SandboxUrl | None = None
    """Where the platform publishes the keys of its id tokens. Default: the platform's own address."""
    base_url: BaseUrl | None = None
    """Replaces the hosts of the platform. Default: the platform's own."""
    client_id: str = Field(default="", max_length=512)
    """The id with which we call the platform. `audiences` must contain it if codes are exchanged."""
    client_secret: SecretStr | None = None
    """The secret with which we call the platform."""
    redirect_uri: str = Field(default="", max_length=2048)
    """The redirect URI for which codes were issued, if the platform compares it."""
    private_key: SecretStr | None = None
    """Our private key in PEM format, for platforms to which calls are signed."""
    key_id: str = Field(default="", max_length=512)
    """The platform's id of `private_key`."""
    team_id: str = Field(default="", max_length=512)
    """The id of our team at the platform."""
    bundle_ids: list[_Id] = Field(default_factory=list, max_length=100)
    """The bundle ids of our apps, for `ios_games_service`, which does not use `audiences`."""
    skip_signature_verify: bool = False
    """Whether `ios_games_service` trusts the player id that the client names, without a signature."""
    key_hosts: list[_Host] = Field(default_factory=list, max_length=20)
    """The hosts from which keys of `ios_games_service` are fetched. Default: the platform's own."""
    key_roots: list[Pem] = Field(default_factory=list, max_length=20)
    """Root certificates in PEM format that replace the bundled ones, for `ios_games_service`."""
    public_key: Pem = ""
    """The platform's public key in PEM format, for platforms that sign their responses."""
    require_nonce: bool = False
    """Whether id tokens must contain the `nonce` that is sent with them. If so, access tokens of Microsoft and
    Facebook are refused, because they contain none. Only Microsoft, Facebook, Apple and Google have proofs with a
    nonce."""
    prefer_unionid: bool = False
    """WeChat: whether identities belong to your open platform account, if you have one, and not to one app. Choose
    before users log in: the ids of users differ, so users who have logged in before get new accounts."""
    fetch_profile: bool = True
    """Whether profiles are stored after a login or a bind. They come from the proof, or are fetched from the
    platform."""


PLATFORMS = (
    "ios_vendor_id",
    "social_network_a",
    "search_vendor_id",
    "photo_network",
    "microblog",
    "chat_network",
    "im_network_a",
    "im_network_b",
    "payment_wallet_a",
    "software_vendor_id",
    "retail_platform",
    "android_games_service",
    "ios_games_service",
)
"""The ids of the third-party platforms."""

SIGN_IN = ConfigKind("sign_in", "Sign-in platform", SignIn, names=PLATFORMS, addresses=("provider", "base_url"))
