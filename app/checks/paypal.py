"""Checks of the configs of PayPal apps, and of products that are sold there, when they are written."""

import ssl
from collections.abc import Iterator

from cryptography.x509 import load_pem_x509_certificates

from app.checks.platform_urls import versioned_url
from storage.configs.kinds.products import Product, WalletProduct
from storage.configs.kinds.walletpay import PayPalApp, WalletPay
from storage.configs.rules import Checked, Fault
from vendors.payments.paypal.fields import decimal_of


def check(value: PayPalApp | Product) -> Checked:
    """Check a PayPal app, or the price of a product there.

    Missing fields only cause warnings, because a config may be completed later.
    """
    match value:
        case PayPalApp():
            return Checked(value, [*versioned_url(value.base_url), *_unreadable(value)], list(_insufficient(value)))
        case Product(walletpay=WalletProduct()):
            return Checked(value, list(_unpayable(value)), list(_without_plan(value)))
    return Checked(value)


def _unreadable(config: PayPalApp) -> Iterator[Fault]:
    if not config.certificate_ca:
        return
    try:
        load_pem_x509_certificates(config.certificate_ca.encode())
        ssl.create_default_context(
            cadata=config.certificate_ca
        )  # It reads certificates for connections, and only in ASCII.
    except (ValueError, TypeError, ssl.SSLError):
        yield Fault("certificate_ca", "must be certificates in PEM format")


def _insufficient(config: PayPalApp) -> Iterator[Fault]:
    if not config.client_secret.get_secret_value():
        yield Fault("client_secret", "is empty, so PayPal refuses every call")
    if not config.webhook_id:
        yield Fault("webhook_id", "is empty, so webhooks cannot be verified")
    if isinstance(config, WalletPay):
        for name in ("return_url", "cancel_url"):
            if getattr(config, name) is None:
                yield Fault(name, "is not set, so each request must name one")


def _unpayable(product: Product) -> Iterator[Fault]:
    if product.price is None:
        return
    prices = {f"price.countries.{country}": price for country, price in product.price.countries.items()}
    for path, price in {"price": product.price, **prices}.items():
        try:
            decimal_of(price.money)
        except ValueError as error:
            yield Fault(f"{path}.amount", f"cannot be paid: {error}")


def _without_plan(product: Product) -> Iterator[Fault]:
    if product.type == "subscription" and product.walletpay and product.walletpay.plan_id is None:
        yield Fault("walletpay.plan_id", "is not set, so it can be bought only in the countries of plans")
