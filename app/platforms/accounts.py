"""Our accounts at payment platforms, as configs describe them: one client for each config, behind its gate."""

from pydantic import SecretStr

from actors.clients.vendor_clients import VendorClients
from storage.configs.kinds.cardpay import CardPay
from storage.configs.kinds.urls import resolve_url
from storage.configs.kinds.vendor_accounts import CallLimits
from storage.configs.kinds.walletpay import PayPalApp
from storage.configs.rows import ConfigKey
from streams.wire.errors import ConfigInvalid
from vendors.account import Account
from vendors.payments.paypal import client as paypal
from vendors.payments.paypal.client import PayPal
from vendors.payments.stripe import client as stripe
from vendors.payments.stripe.client import Stripe

_VERIFY_WITHIN_S = 4
"""Less than the rest of the 10 seconds for a webhook whose certificate could not be fetched."""
_VERIFICATIONS = 4
"""How many calls that verify webhooks of a config are made at once, and how many certificates are fetched at once.
Four times as many may wait."""


def open_stripe(vendors: VendorClients, config: CardPay, *, key: ConfigKey, sandbox_url: str | None) -> Stripe:
    """Return the account of the config `key`. Raises `ConfigInvalid` if it names a sandbox that does not run."""
    base_url = config.base_url or stripe.BASE_URL
    account = _account(key, base_url, config.secret_key, config.concurrency, sandbox_url=sandbox_url)
    return Stripe(vendors.http, account, vendors.gate(key, config, account))


def open_paypal(vendors: VendorClients, config: PayPalApp, *, key: ConfigKey, sandbox_url: str | None) -> PayPal:
    """Return our app of the config `key`. Raises `ConfigInvalid` if it names a sandbox that does not run."""
    account = _paypal_account(key, config, config, sandbox_url=sandbox_url)
    return PayPal(vendors.http, account, vendors.gate(key, config, account), client_id=config.client_id)


def open_verifier(vendors: VendorClients, config: PayPalApp, *, key: ConfigKey, sandbox_url: str | None) -> PayPal:
    """Return our app of the config `key` for verifying webhooks. Raises `ConfigInvalid` as `open_paypal` does.

    Its calls, and its fetches of certificates, have a small gate each: anybody can send webhooks, and those must
    not delay payments. If the host of the certificates is away, webhooks are still verified by calls.
    """
    limits = CallLimits(concurrency=_VERIFICATIONS, waiting=4 * _VERIFICATIONS)
    account = _paypal_account(key, config, limits, sandbox_url=sandbox_url)
    calls, certificates = (
        vendors.gate(ConfigKey(key.app_id, f"{key.kind}_{use}", key.name), limits, account)
        for use in ("webhooks", "certificates")
    )
    return PayPal(
        vendors.http,
        account,
        calls,
        client_id=config.client_id,
        within_s=_VERIFY_WITHIN_S,
        certificates=certificates,
    )


def _paypal_account(key: ConfigKey, config: PayPalApp, limits: CallLimits, *, sandbox_url: str | None) -> Account:
    base_url = config.base_url or paypal.BASE_URL
    return _account(key, base_url, config.client_secret, limits.concurrency, sandbox_url=sandbox_url)


def _account(
    key: ConfigKey, base_url: str, secret: SecretStr, concurrency: int, *, sandbox_url: str | None
) -> Account:
    address = resolve_url(base_url, sandbox_url=sandbox_url)
    if address is None:
        raise ConfigInvalid(f"{key.kind} {key.name}: base_url names the sandbox, which does not run")
    return Account(key.name, key.kind, address.rstrip("/"), secret, concurrency)
