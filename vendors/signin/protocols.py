"""The interface of sign-in providers: a proof that a client sends becomes a verified identity (§2.2).

A token proves who somebody is only if it was issued to one of our apps. Each provider checks this.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Protocol, runtime_checkable

from pydantic import SecretStr

from streams.wire.errors import BackendUnavailable, ServiceError
from vendors.errors import VendorError
from vendors.http.transport import VendorHttp


@dataclass(frozen=True, slots=True)
class SignInApp:
    """Our app at a provider, from a config of kind `sign_in`. Empty means that the config does not set it."""

    platform: str
    """The platform id of the interface, under which errors name the provider."""
    audiences: Sequence[str] = ()
    """The ids of our apps. A proof that was issued to any other app is refused."""
    issuers: Sequence[str] = ()
    """The accepted issuers of id tokens. Empty: those of the provider."""
    jwks_url: str = ""
    """Where the provider publishes its keys. Empty: the provider's own address."""
    base_url: str = ""
    """Replaces the provider's own hosts, without a slash at the end."""
    client_id: str = ""
    client_secret: SecretStr = field(default_factory=lambda: SecretStr(""))
    redirect_uri: str = ""
    private_key: SecretStr = field(default_factory=lambda: SecretStr(""))
    """In PEM format: signs our calls."""
    key_id: str = ""
    team_id: str = ""
    bundle_ids: Sequence[str] = ()
    skip_signature_verify: bool = False
    key_hosts: Sequence[str] = ()
    key_roots: Sequence[str] = ()
    """Root certificates in PEM format that replace the bundled ones."""
    public_key: str = ""
    """In PEM format: verifies the provider's responses."""
    require_nonce: bool = False
    prefer_unionid: bool = False
    """WeChat: identities are those of the operator's open platform account, if it has one, and not of one app."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a client sends to prove an identity (§2.2). A field that its platform does not have is empty."""

    id: str = ""
    code: str = ""
    id_token: str = ""
    """`identity_token` or `id_token` of the interface."""
    access_token: str = ""
    open_id: str = ""
    expiration_date: int = 0
    nonce: str = ""
    player_id: str = ""
    team_player_id: str = ""
    public_key_url: str = ""
    salt: str = ""
    signature: str = ""
    timestamp: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """What a provider reports about a person (§2.5)."""

    user_name: str = ""
    avatar: str = ""
    email: str = ""
    """Present only if the provider reports it as verified. Otherwise, it may belong to anybody."""
    region: str = ""
    province: str = ""
    city: str = ""
    gender: int = 0
    """0 unknown, 1 male, 2 female."""


@dataclass(frozen=True, slots=True)
class VerifiedIdentity:
    """An identity that a provider has confirmed.

    `social_id` is unique at the provider. `trusted` is false if only the client claims the identity. `profile`
    contains the profile in the proof itself; `SignIn.profile` fetches other fields later.
    """

    social_id: str
    openid: str = ""
    xid: str = ""
    access_token: str = ""
    refresh_token: str = ""
    expiration_date: int = 0
    """Unix seconds at which `access_token` expires, or 0."""
    trusted: bool = True
    profile: Profile | None = None
    single_use: str = ""
    """A value that must not be accepted again before `single_use_until`, such as a signature. Empty: none."""
    single_use_until: datetime | None = None


class ProofRefused(ServiceError):
    """The platform does not confirm the identity, or its proof was not issued to this app."""

    error_type = "account.sp_auth_failed"
    status = 400

    def __init__(
        self,
        what: str = "the sign-in platform does not confirm this identity",
        *,
        seen: object = None,
        allowed: object = None,
    ) -> None:
        """Clients get the default text.

        `what`, `seen` and `allowed` are for the operator's trace and contain no secrets.
        """
        super().__init__(what)
        self.seen = seen
        self.allowed = allowed


class ProviderUnavailable(BackendUnavailable):
    """The sign-in platform did not answer, or violated its protocol."""

    error_type = "gateway"
    status = 502

    @classmethod
    def of(cls, error: VendorError) -> "ProviderUnavailable":
        unavailable = cls(error.what, retry_after_s=error.retry_after_s)
        unavailable.retryable = error.retryable
        return unavailable


class SignIn(Protocol):
    """A client of a provider. It needs at least one of the fields of `Proof` in `proof_fields`.

    Its constructor raises `ConfigInvalid`, naming the field, if the config is not sufficient.
    """

    proof_fields: ClassVar[tuple[str, ...]]

    def __init__(self, http: VendorHttp, app: SignInApp) -> None: ...

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        """Return the identity that `proof` proves. Raises `ProofRefused` or `VendorError`."""

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        """Fetch the profile, or return None if the provider has none. Raises `VendorError`."""


@runtime_checkable
class RequiresFields(Protocol):
    """A client of a provider that also requires other fields of `Proof`."""

    required_fields: Sequence[str]


@runtime_checkable
class Revokes(Protocol):
    """A client of a provider that can end the link between a person and our app."""

    async def revoke(self, refresh_token: str) -> None:
        """Revoke a token. Repeated calls succeed. Raises `VendorError`, or `ConfigInvalid`."""
