"""Clients of PayPal, as the configs of kind `walletpay` and `payouts` describe our apps there."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from actors.vendor_clients import VendorAccess, VendorClients
from storage.config_rows import ConfigKey
from storage.kinds import walletpay as kind
from storage.kinds.sign_in import resolved
from streams.wire.errors import ConfigInvalid
from vendors.account import Account
from vendors.catalog import Capability
from vendors.payments.paypal import BASE_URL, PayPal, PayPalApp

Result = TypeVar("Result")

_WITHIN_S = 15
_PAYPAL = Capability[PayPalApp, PayPal]("paypal").by(PayPal)


@dataclass(frozen=True, slots=True)
class PayPalClient:
    """A client of PayPal behind the gate of its config."""

    access: VendorAccess[PayPalApp, PayPal]
    app: PayPalApp

    async def call(self, use: Callable[[PayPal], Awaitable[Result]], *, within_s: float = _WITHIN_S) -> Result:
        """Return the result of `use`.

        Raises `VendorError` if PayPal fails or refuses (`PayPalRefused`), or if its breaker is open. After
        `TimedOut` and `Unreachable`, PayPal may have done what was asked.
        """
        return await self.access.call(self.app, use, within_s=within_s)


def open_paypal(
    vendors: VendorClients, config: kind.PayPalApp, *, key: ConfigKey, sandbox_url: str | None
) -> PayPalClient:
    """Return the client of the config `key`. Raises `ConfigInvalid` if it names a sandbox that does not run."""
    base_url = resolved(config.base_url or BASE_URL, sandbox_url=sandbox_url)
    if base_url is None:
        raise ConfigInvalid(f"{key.kind} {key.name}: base_url names the sandbox, which does not run")
    account = Account(key.name, key.kind, base_url.rstrip("/"), config.client_secret, config.concurrency)
    access = vendors.open(_PAYPAL, account, key=key, limits=config)
    return PayPalClient(access, PayPalApp(config.client_id))
