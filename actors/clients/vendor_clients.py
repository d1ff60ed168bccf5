"""Vendor clients behind the gates of their accounts, for every area that calls vendors."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS, CallLimits, VendorAccount
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore
from streams.wire.errors import ConfigInvalid
from vendors.account import Account
from vendors.calls.breaker import BreakerPolicy
from vendors.calls.gate import Gate, GatePolicy
from vendors.catalog import CATALOG, Capability, Client, Spec, Vendor
from vendors.http.transport import VendorHttp
from vendors.local_engines import LocalEngines

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class VendorAccess(Generic[Spec, Client]):
    """One capability of a vendor account. All calls of its clients must pass `gate`."""

    account: Account
    gate: Gate
    vendor: Vendor[Spec, Client]
    http: VendorHttp

    @property
    def platform(self) -> str:
        return self.account.platform

    def client(self, spec: Spec) -> Client:
        """Return a client for streams, which `first_success` calls. Raises `InvalidParameter` for its options."""
        return self.vendor.client(self.http, self.account, spec)

    async def call(self, spec: Spec, use: Callable[[Client], Awaitable[Result]], *, within_s: float) -> Result:
        """Return the result of `use(client)`, which makes one call through the gate.

        Raises `VendorError`: `Refused` while the breaker is open, `TimedOut` after `within_s`.
        """
        client = self.client(spec)
        return await self.gate.call(self.platform, lambda: use(client), within_s=within_s)


class VendorClients:
    """Opens vendor accounts. Each account has one gate per process, which all areas share."""

    def __init__(
        self, configs: ConfigStore, http: VendorHttp, engines: LocalEngines, *, local_url: str | None
    ) -> None:
        self._configs = configs
        self.http = http
        self._engines = engines
        self._local_url = local_url
        self._gates: dict[ConfigKey, tuple[CallLimits, Account, Gate]] = {}

    @property
    def version(self) -> tuple[object, ...]:
        """Changes when an account may have changed. Clients may be kept until then."""
        return self._configs.version, self._engines.missing

    def account(
        self, capability: Capability[Spec, Client], app_id: str, name: str, *, model: str = ""
    ) -> VendorAccess[Spec, Client]:
        """Open a config of kind `vendor_accounts`. Raises `ConfigInvalid` if it cannot be used for `capability`.

        `model` is the model that will be called. It matters only for the engines of this machine, which may be
        missing.
        """
        config = self._configs.required(VENDOR_ACCOUNTS, app_id, name).value
        vendor = _required_vendor(capability, name, config)
        account = self._account(name, config, model)
        return self.open(vendor, account, key=ConfigKey(app_id, VENDOR_ACCOUNTS.name, name), limits=config)

    def draft(
        self, capability: Capability[Spec, Client], name: str, config: VendorAccount, *, model: str
    ) -> VendorAccess[Spec, Client]:
        """Open `config`, which need not be stored, for one trial. Raises `ConfigInvalid`."""
        vendor = _required_vendor(capability, name, config)
        return self.open_draft(vendor, self._account(name, config, model), limits=config)

    def open_draft(
        self, vendor: Vendor[Spec, Client], account: Account, *, limits: CallLimits
    ) -> VendorAccess[Spec, Client]:
        """Open an account for one trial. Its failures do not count for the account that is in use."""
        return VendorAccess(account, _new_gate("draft", _policy(limits), account), vendor, self.http)

    def open(
        self, vendor: Vendor[Spec, Client], account: Account, *, key: ConfigKey, limits: CallLimits
    ) -> VendorAccess[Spec, Client]:
        """Open an account that the config `key`, of any kind, contains."""
        gate = self.gate(key, limits, account)
        _, known, _ = self._gates[key]  # It knows what its server has refused.
        return VendorAccess(known, gate, vendor, self.http)

    def gate(self, key: ConfigKey, limits: CallLimits, account: Account) -> Gate:
        """Return the gate of an account.

        A change of the limits, the URL or the key creates a new gate, because the failures and latencies of earlier
        calls say nothing about the changed account.
        """
        known = self._gates.get(key)
        if known is not None and known[0] is limits:  # The config was not read again.
            return known[2]
        policy = _policy(limits)
        if known is not None and known[1] == account:
            account = known[1]
        gate = known[2] if known is not None and known[1] is account and known[2].policy == policy else None
        if gate is None:
            gate = _new_gate(_label(key), policy, account)
        self._gates[key] = limits, account, gate
        return gate

    def _account(self, name: str, config: VendorAccount, model: str) -> Account:
        base_url = self._base_url(name, config, model)
        return Account(name, config.platform, base_url, config.api_key, config.concurrency, config.stream_options)

    def _base_url(self, name: str, config: VendorAccount, model: str) -> str:
        platform = CATALOG[config.platform]
        own_engines = platform.local and config.base_url is None
        if own_engines and (reason := self._engines.missing.get(model)):
            raise ConfigInvalid(f"vendor_accounts {name}: {model} is missing: {reason}")
        base_url = self._local_url if own_engines else config.base_url or platform.base_url
        if base_url is None:
            raise ConfigInvalid(f"vendor_accounts {name}: base_url is not set")
        return base_url.rstrip("/")


def vendor_of(capability: Capability[Spec, Client], platform: str) -> Vendor[Spec, Client] | str:
    """Return how `platform` provides `capability`, or why it does not."""
    if platform not in CATALOG:
        return f"platform {platform} is unknown"
    return capability.vendors.get(platform) or f"platform {platform} offers no {capability.name}"


def _required_vendor(
    capability: Capability[Spec, Client], name: str, config: VendorAccount
) -> Vendor[Spec, Client]:
    vendor = vendor_of(capability, config.platform)
    if isinstance(vendor, str):
        raise ConfigInvalid(f"vendor_accounts {name}: {vendor}")
    return vendor


def _policy(limits: CallLimits) -> GatePolicy:
    breaker = BreakerPolicy(**limits.breaker.model_dump())
    return GatePolicy(concurrency=limits.concurrency, waiting=limits.waiting, breaker=breaker)


def _new_gate(label: str, policy: GatePolicy, account: Account) -> Gate:
    gate = Gate(label, policy)
    gate.secret = account.api_key.get_secret_value() if account.api_key else ""
    return gate


def _label(key: ConfigKey) -> str:
    """Return the `account` of the gate's metrics."""
    return f"{key.app_id}/{key.name}" if key.kind == VENDOR_ACCOUNTS.name else "/".join(key)
