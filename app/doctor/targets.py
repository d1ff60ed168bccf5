"""The addresses in configs or derived from them, and the configs to which they belong."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from app.doctor.findings import Area
from app.doctor.surroundings import Surroundings
from app.settings import Settings
from storage.configs.kinds.base import ConfigKind, ConfigModel
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.kinds.events import EVENTS
from storage.configs.kinds.payouts import PAYOUTS
from storage.configs.kinds.sign_in import SIGN_IN, SignIn
from storage.configs.kinds.sms import SMS
from storage.configs.kinds.urls import SANDBOX, resolve_url
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS, VendorAccount
from storage.configs.kinds.walletpay import WALLETPAY, PayPalApp
from storage.configs.store import ConfigStore
from storage.operators.doctor_reports import Finding
from streams.wire.errors import ServiceError
from vendors.catalog import CATALOG
from vendors.payments.paypal import client as paypal
from vendors.payments.stripe import client as stripe
from vendors.signin.catalog import DEFAULT_PROVIDERS, HOSTS

_SERVICES = ("speech", "texttospeech")
"""The values of `{service}` in the addresses of Google's APIs."""
_SHOWN = 5
KINDS = (VENDOR_ACCOUNTS, SIGN_IN, CARDPAY, WALLETPAY, PAYOUTS, SMS, EVENTS)
"""The kinds of configs that name addresses."""
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Target:
    """A server that Parley calls."""

    scheme: str
    host: str
    port: int
    configs: list[str] = field(compare=False)
    """The configs that need it, as `<app>/<kind>/<name>`."""

    @property
    def address(self) -> str:
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def unchecked(area: Area, here: Surroundings, kinds: Collection[ConfigKind[Any]]) -> Iterator[Finding]:
    """Yield a finding if configs of `kinds` cannot be used, so that `usable_configs` leaves them out."""
    if here.configs is None:
        yield area.broken(
            "not checked",
            here.unread,
            why="what this part checks is named in configs, and they cannot be read",
            fix="repair the stores: doctor --only postgres --only valkey",
        )
        return
    names = {kind.name for kind in kinds}
    if left_out := ["/".join(key) for key in here.configs.broken() if key.kind in names]:
        yield area.broken(
            "not checked",
            f"{', '.join(left_out[:_SHOWN])}{' …' if len(left_out) > _SHOWN else ''}",
            why="the configs cannot be used",
            fix="correct them: doctor --only secrets says what is wrong",
        )


def usable_configs(configs: ConfigStore, kind: ConfigKind[ConfigModel]) -> Iterator[tuple[str, str, ConfigModel]]:
    """Yield the app, the name and the value of each usable config of a kind."""
    for app_id in configs.apps():
        for name in configs.names(kind, app_id):
            try:
                yield app_id, name, configs.get(kind, app_id, name).value
            except ServiceError:
                continue  # `unchecked` reports it.


def targets_of(configs: ConfigStore, settings: Settings) -> list[Target]:
    """Return the servers that configs name, each once."""
    found: dict[Target, Target] = {}
    for config, url in _urls(configs, settings):
        address = resolve_url(url, sandbox_url=settings.sandbox_url)
        parts = urlsplit(address or "")
        if parts.scheme not in _PORTS or not parts.hostname:
            continue
        target = Target(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme], [])
        found.setdefault(target, target).configs.append(config)
    return list(found.values())


def _urls(configs: ConfigStore, settings: Settings) -> Iterator[tuple[str, str]]:
    yield from _named(configs, VENDOR_ACCOUNTS, lambda _, value: _of_account(value, settings))
    yield from _named(configs, SIGN_IN, _of_sign_in)
    yield from _named(configs, CARDPAY, lambda _, value: [value.base_url or stripe.BASE_URL])
    yield from _named(configs, WALLETPAY, _of_paypal)
    yield from _named(configs, PAYOUTS, _of_paypal)
    yield from _named(configs, SMS, lambda _, value: [value.url])
    yield from _named(configs, EVENTS, lambda _, value: [value.url] if value.url else [])


def _named(configs: ConfigStore, kind: ConfigKind[Any], urls_of: Any) -> Iterator[tuple[str, str]]:
    for app_id, name, value in usable_configs(configs, kind):
        for url in urls_of(name, value):
            yield f"{app_id}/{kind.name}/{name}", url


def _of_account(value: VendorAccount, settings: Settings) -> Iterable[str]:
    platform = CATALOG.get(value.platform)
    if platform is None:
        return ()
    own = settings.local_url if platform.local else platform.base_url
    url = value.base_url or own or ""
    return {url.replace("{service}", service) for service in _SERVICES}


def _of_sign_in(name: str, value: SignIn) -> Iterable[str]:
    if not value.enabled:
        return ()
    provider = value.provider or DEFAULT_PROVIDERS.get(name, "")
    own = (value.base_url,) if value.base_url else HOSTS.get(provider, ())
    return (*own, *([value.jwks_url] if value.jwks_url else []))


def _of_paypal(_: str, value: PayPalApp) -> Iterable[str]:
    base_url = value.base_url or paypal.BASE_URL
    if base_url.startswith(SANDBOX):  # Its certificates have its own port.
        return (base_url,)
    return (base_url, *(f"https://{host}" for host in value.certificate_hosts))
