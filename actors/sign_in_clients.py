"""Clients of sign-in platforms, as the configs of kind `sign_in` describe our apps there."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import SecretStr

from actors.vendor_clients import VendorAccess, VendorClients
from storage.config_rows import ConfigKey
from storage.configs import ConfigStore
from storage.kinds import sign_in as kind
from storage.kinds.sign_in import SANDBOX, SIGN_IN
from streams.wire.errors import ConfigInvalid
from vendors.account import Account
from vendors.catalog import Capability, NoOptions, Vendor
from vendors.signin.catalog import DEFAULT_PROVIDERS, PROVIDERS
from vendors.signin.protocols import SignIn, SignInApp
from vendors.transport import VendorHttp

Result = TypeVar("Result")

_WITHIN_S = 10
"""The time for all calls of one verification. Each of them has at most 5 s."""
_WITHOUT_CONFIG = {"android_games_service": kind.SignIn()}
"""Platforms that can be used without a config. An app may still disable them with one."""
_WITHOUT_AUDIENCES = frozenset({"play_games", "game_center"})
"""Providers whose proofs name no audience: the client is trusted, or `bundle_ids` say which apps are ours."""
_SIGN_IN = Capability[SignInApp, SignIn]("sign_in")


@dataclass(frozen=True, slots=True)
class SignInClient:
    """A provider's client behind the gate of its config."""

    provider: str
    config: kind.SignIn
    sign_in: SignIn
    access: VendorAccess[SignInApp, SignIn]

    async def call(self, once: Callable[[SignIn], Awaitable[Result]]) -> Result:
        """Return the result of `once`. Raises `VendorError` if the platform fails or is not called for now."""
        return await self.access.gate.call(self.access.platform, lambda: once(self.sign_in), within_s=_WITHIN_S)


class SignInClients:
    """Opens the clients of sign-in platforms. Each config has one client and one gate per process.

    A client keeps what it has fetched, such as the keys of id tokens, until its config changes.
    """

    def __init__(self, configs: ConfigStore, vendors: VendorClients, *, sandbox_url: str | None) -> None:
        self._configs = configs
        self._vendors = vendors
        self._sandbox_url = sandbox_url
        self._clients: dict[ConfigKey, tuple[kind.SignIn, SignIn]] = {}

    def open(self, app_id: str, platform: str) -> SignInClient:
        """Return the client of a platform. Raises `ConfigInvalid` if its config is missing or not sufficient."""
        key = ConfigKey(app_id, SIGN_IN.name, platform)
        if platform in _WITHOUT_CONFIG and not self._configs.exists(SIGN_IN, app_id, platform):
            config = _WITHOUT_CONFIG[platform]
        else:
            config = self._configs.required(SIGN_IN, app_id, platform).value
        if not config.enabled:
            raise _invalid(platform, "enabled is false")
        provider = config.provider or DEFAULT_PROVIDERS[platform]
        if provider not in _WITHOUT_AUDIENCES and not config.audiences:
            raise _invalid(platform, "audiences must not be empty")
        account = Account(platform, platform, "", config.client_secret, config.concurrency)
        vendor = Vendor(_SIGN_IN, _opens(provider), NoOptions, None)
        access = self._vendors.open(vendor, account, key=key, limits=config)
        known = self._clients.get(key)
        if known is None or known[0] is not config:
            known = config, access.client(self._app(platform, config))
            self._clients[key] = known
        return SignInClient(provider, config, known[1], access)

    def _app(self, platform: str, config: kind.SignIn) -> SignInApp:
        none = SecretStr("")
        return SignInApp(
            platform,
            audiences=tuple(config.audiences),
            issuers=tuple(config.issuers),
            jwks_url=self._url(platform, "jwks_url", config.jwks_url),
            base_url=self._url(platform, "base_url", config.base_url).rstrip("/"),
            client_id=config.client_id,
            client_secret=config.client_secret or none,
            redirect_uri=config.redirect_uri,
            private_key=config.private_key or none,
            key_id=config.key_id,
            team_id=config.team_id,
            bundle_ids=tuple(config.bundle_ids),
            skip_signature_verify=config.skip_signature_verify,
            key_hosts=tuple(config.key_hosts),
            key_roots=tuple(config.key_roots),
            public_key=config.public_key,
            require_nonce=config.require_nonce,
            prefer_unionid=config.prefer_unionid,
            fetch_profile=config.fetch_profile,
        )

    def _url(self, platform: str, field: str, url: str | None) -> str:
        if url is None or not url.startswith(SANDBOX):
            return url or ""
        if self._sandbox_url is None:
            raise _invalid(platform, f"{field} names the sandbox, which does not run")
        return url.replace(SANDBOX, self._sandbox_url, 1)


def _opens(provider: str) -> Callable[[VendorHttp, Account, SignInApp], SignIn]:
    providers: Mapping[str, Callable[[VendorHttp, SignInApp], SignIn]] = PROVIDERS
    return lambda http, _, app: providers[provider](http, app)


def _invalid(platform: str, problem: str) -> ConfigInvalid:
    return ConfigInvalid(f"sign_in {platform}: {problem}")
