"""Clients of sign-in platforms, as the configs of kind `sign_in` describe our apps there.

They are kept until their config changes, each behind the gate of its config. `{sandbox}` in a URL of a config
stands for the sandbox of a development server, so that its port may change. The times in proofs of platforms are
compared with real time, not with an app's clock.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from pydantic import SecretStr

from actors.clients.vendor_clients import VendorAccess, VendorClients
from storage.configs.kinds import sign_in as kind
from storage.configs.kinds.sign_in import SIGN_IN
from storage.configs.kinds.urls import SANDBOX, resolve_url
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore
from streams.wire.errors import ConfigInvalid
from vendors.account import Account
from vendors.catalog import Capability, NoOptions, Vendor
from vendors.http.transport import VendorHttp
from vendors.signin.catalog import CHECK_NONCE, CLIENT_FIELDS, DEFAULT_PROVIDERS, PROVIDERS
from vendors.signin.protocols import SignIn, SignInApp

Result = TypeVar("Result")

_WITHIN_S = 10
"""The time limit for all calls of one verification. That of a single call is 5 s."""
_WITHOUT_CONFIG = {"android_games_service": kind.SignIn()}
"""Platforms that can be used without a config. An app may still disable them with one."""
_WITHOUT_AUDIENCES = frozenset({"play_games", "game_center"})
"""Providers whose proofs name no audience: the client is trusted, or `bundle_ids` lists our apps."""
_SIGN_IN = Capability[SignInApp, SignIn]("sign_in")


@dataclass(frozen=True, slots=True)
class SignInClient:
    """A provider's client behind the gate of its config."""

    provider: str
    config: kind.SignIn
    sign_in: SignIn
    access: VendorAccess[SignInApp, SignIn]

    async def call(self, send: Callable[[SignIn], Awaitable[Result]]) -> Result:
        """Return the result of `send`. Raises `VendorError` if the platform fails or its breaker is open."""
        return await self.access.gate.call(self.access.platform, lambda: send(self.sign_in), within_s=_WITHIN_S)


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
        provider = provider_of(platform, config)
        access = self._vendors.open(_vendor(provider), _account(platform, config), key=key, limits=config)
        known = self._clients.get(key)
        if known is None or known[0] is not config:
            known = config, access.client(_app(platform, config, sandbox_url=self._sandbox_url))
            self._clients[key] = known
        return SignInClient(provider, config, known[1], access)

    def draft(self, platform: str, config: kind.SignIn) -> SignInClient:
        """Open `config`, which need not be stored or enabled, for one trial. Raises `ConfigInvalid`."""
        provider = provider_of(platform, config)
        access = self._vendors.open_draft(_vendor(provider), _account(platform, config), limits=config)
        client = access.client(_app(platform, config, sandbox_url=self._sandbox_url))
        return SignInClient(provider, config, client, access)


def check(platform: str, config: kind.SignIn) -> None:
    """Raise `ConfigInvalid` if a config does not work. The message begins with the name of the field."""
    provider = provider_of(platform, config)
    no_http = cast("VendorHttp", None)  # The constructor makes no call.
    PROVIDERS[provider](no_http, _app(platform, config, sandbox_url=SANDBOX))


def provider_of(platform: str, config: kind.SignIn) -> str:
    """Return the provider behind a platform. Raises `ConfigInvalid` if it cannot be used with this config."""
    provider = config.provider or DEFAULT_PROVIDERS[platform]
    if CLIENT_FIELDS[platform].isdisjoint(PROVIDERS[provider].proof_fields):
        raise _invalid(platform, f"provider {provider} cannot prove {platform}")
    if provider not in _WITHOUT_AUDIENCES and not config.audiences:
        raise _invalid(platform, "audiences must not be empty")
    if config.require_nonce and ("nonce" not in CLIENT_FIELDS[platform] or provider not in CHECK_NONCE):
        raise _invalid(platform, f"require_nonce must be false, because proofs of {provider} contain no nonce here")
    return provider


def _app(platform: str, config: kind.SignIn, *, sandbox_url: str | None) -> SignInApp:
    none = SecretStr("")
    urls = {"jwks_url": config.jwks_url or "", "base_url": config.base_url or ""}
    for field, url in urls.items():
        address = resolve_url(url, sandbox_url=sandbox_url)
        if address is None:
            raise _invalid(platform, f"{field} names the sandbox, which does not run")
        urls[field] = address
    return SignInApp(
        platform,
        audiences=tuple(config.audiences),
        issuers=tuple(config.issuers),
        jwks_url=urls["jwks_url"],
        base_url=urls["base_url"].rstrip("/"),
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
    )


def _vendor(provider: str) -> Vendor[SignInApp, SignIn]:
    return Vendor(_SIGN_IN, lambda http, _, app: PROVIDERS[provider](http, app), NoOptions, None)


def _account(platform: str, config: kind.SignIn) -> Account:
    return Account(platform, platform, "", config.client_secret, config.concurrency)


def _invalid(platform: str, problem: str) -> ConfigInvalid:
    return ConfigInvalid(f"sign_in {platform}: {problem}")
