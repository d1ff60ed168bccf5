"""Clients of Stripe, as the configs of kind `cardpay` describe our accounts there."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from actors.clients.vendor_clients import VendorAccess, VendorClients
from storage.configs.kinds.cardpay import CardPay
from storage.configs.kinds.urls import resolved
from storage.configs.rows import ConfigKey
from streams.wire.errors import ConfigInvalid
from vendors.account import Account
from vendors.catalog import Capability
from vendors.payments.stripe import BASE_URL, Stripe

Result = TypeVar("Result")

_WITHIN_S = 15
_STRIPE = Capability[None, Stripe]("stripe").by(Stripe)


@dataclass(frozen=True, slots=True)
class StripeClient:
    """A client of Stripe behind the gate of its config."""

    access: VendorAccess[None, Stripe]

    async def call(self, use: Callable[[Stripe], Awaitable[Result]], *, within_s: float = _WITHIN_S) -> Result:
        """Return the result of `use`.

        Raises `VendorError` if Stripe fails or refuses, or if its breaker is open. After `TimedOut` and
        `Unreachable`, Stripe may have done what was asked.
        """
        return await self.access.call(None, use, within_s=within_s)


def open_stripe(
    vendors: VendorClients, config: CardPay, *, key: ConfigKey, sandbox_url: str | None
) -> StripeClient:
    """Return the client of the config `key`. Raises `ConfigInvalid` if it names a sandbox that does not run."""
    base_url = resolved(config.base_url or BASE_URL, sandbox_url=sandbox_url)
    if base_url is None:
        raise ConfigInvalid(f"{key.kind} {key.name}: base_url names the sandbox, which does not run")
    account = Account(key.name, key.kind, base_url.rstrip("/"), config.secret_key, config.concurrency)
    return StripeClient(vendors.open(_STRIPE, account, key=key, limits=config))
