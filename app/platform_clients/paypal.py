"""Clients of PayPal, as the configs of kind `walletpay` and `payouts` describe our apps there."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import structlog

from actors.clients.vendor_clients import VendorAccess, VendorClients
from storage.configs.kinds import walletpay as kind
from storage.configs.kinds.urls import resolved
from storage.configs.kinds.vendor_accounts import CallLimits
from storage.configs.rows import ConfigKey
from streams.wire.errors import ConfigInvalid
from vendors.account import Account
from vendors.catalog import Capability
from vendors.errors import VendorError
from vendors.http.fetched import FETCH_S
from vendors.payments.paypal import BASE_URL, PayPal, PayPalApp
from vendors.payments.paypal_certificates import CERTIFICATE_HOSTS, check_url
from vendors.payments.paypal_webhooks import SignedWebhook, verify_offline, verify_online

log = structlog.get_logger()

Result = TypeVar("Result")

_WITHIN_S = 15
_VERIFY_WITHIN_S = 4
"""Less than what remains of the 10 seconds for a webhook after its certificate could not be fetched."""
_VERIFICATIONS = 4
"""How many webhooks of a config are verified at once by calls. Four times as many wait."""
_PAYPAL = Capability[PayPalApp, PayPal]("paypal").by(PayPal)


@dataclass(frozen=True, slots=True)
class PayPalClient:
    """A client of PayPal behind the gate of its config."""

    access: VendorAccess[PayPalApp, PayPal]
    app: PayPalApp

    @property
    def account(self) -> str:
        """Whose payments these are, as operators know it. What another account was asked, it does not know."""
        return f"{self.app.client_id} at {self.access.account.base_url}"

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
    return _open(vendors, config, key, gate=key, limits=config, sandbox_url=sandbox_url)


def open_verifier(
    vendors: VendorClients, config: kind.PayPalApp, *, key: ConfigKey, sandbox_url: str | None
) -> PayPalClient:
    """Return the client that verifies webhooks for the config `key`. Raises `ConfigInvalid` as `open_paypal` does.

    It has a small gate of its own: anybody can send webhooks, and those must not delay payments.
    """
    gate = ConfigKey(key.app_id, f"{key.kind}_webhooks", key.name)
    limits = CallLimits(concurrency=_VERIFICATIONS, waiting=4 * _VERIFICATIONS)
    return _open(vendors, config, key, gate=gate, limits=limits, sandbox_url=sandbox_url)


def _open(
    vendors: VendorClients,
    config: kind.PayPalApp,
    key: ConfigKey,
    *,
    gate: ConfigKey,
    limits: CallLimits,
    sandbox_url: str | None,
) -> PayPalClient:
    base_url = resolved(config.base_url or BASE_URL, sandbox_url=sandbox_url)
    if base_url is None:
        raise ConfigInvalid(f"{key.kind} {key.name}: base_url names the sandbox, which does not run")
    account = Account(key.name, key.kind, base_url.rstrip("/"), config.client_secret, limits.concurrency)
    access = vendors.open(_PAYPAL, account, key=gate, limits=limits)
    return PayPalClient(access, PayPalApp(config.client_id))


async def verify_webhook(
    verifier: PayPalClient, config: kind.PayPalApp, headers: Mapping[str, str], body: bytes
) -> SignedWebhook:
    """Return a webhook that PayPal has sent to our app, by real time at most three days ago.

    Raises `NotGenuine` for any other, and `VendorError` if it cannot be verified at the moment. What needs no call
    is checked first. PayPal is asked if there are no `certificate_hosts`, or if the certificate cannot be fetched
    from them.
    """
    account, now = verifier.access.account, datetime.now(UTC)
    if not config.webhook_id:
        raise ConfigInvalid(f"{account.platform} {account.name}: webhook_id is not set")
    webhook = SignedWebhook.read(headers, body, now=now)
    if config.certificate_hosts:
        try:
            await verify_offline(
                verifier.access.http,
                account.platform,
                webhook,
                webhook_id=config.webhook_id,
                hosts=config.certificate_hosts,
                authorities=config.certificate_ca,
                now=now,
                limited=lambda fetch: verifier.access.gate.call(account.platform, fetch, within_s=FETCH_S),
            )
        except VendorError as error:
            log.warning("webhook.certificate_not_fetched", config=account.name, error=error.what)
        else:
            return webhook
    elif config.base_url is None:
        check_url(webhook.certificate_url, hosts=CERTIFICATE_HOSTS, own_authorities=False)
    await verifier.call(
        lambda paypal: verify_online(paypal, webhook, webhook_id=config.webhook_id), within_s=_VERIFY_WITHIN_S
    )
    return webhook
