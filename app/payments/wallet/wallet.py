"""Shared by all wallet payments: the account of a config, products, and the URLs to return to."""

from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import TypeVar
from urllib.parse import urlsplit

from app.platforms import paypal
from app.services import Services
from storage.configs.kinds.products import PRODUCTS, Product, WalletProduct
from storage.configs.kinds.urls import resolve_url
from storage.configs.kinds.walletpay import WALLETPAY, WalletPay
from streams.wire.errors import ConfigInvalid, InvalidParameter
from vendors.payments.paypal.client import PayPal
from vendors.payments.paypal.errors import PayPalRefused

PLATFORM = "walletpay"
"""The platform of assets that are bought here."""
CHECK_AGAIN = timedelta(minutes=1)
"""How often a row that may change is read back from the platform."""
_REFUSED = frozenset({400, 403, 404, 422})
_URL_CHARACTERS = 2048

Result = TypeVar("Result")


def wallet_config(services: Services, app_id: str, name: str) -> WalletPay:
    """Return a config of kind `walletpay`. Raises `ConfigInvalid`."""
    return services.configs.required(WALLETPAY, app_id, name).value


def account_of(services: Services, app_id: str, name: str) -> PayPal:
    """Return the account of a config. Raises `ConfigInvalid`."""
    return paypal.account_of(services, WALLETPAY, app_id, name=name)


async def none_if_gone(reading: Awaitable[Result]) -> Result | None:
    """Return the result of `reading`, or `None` if the platform no longer has the object."""
    try:
        return await reading
    except PayPalRefused as error:
        if error.not_found:
            return None
        raise


def is_final(error: PayPalRefused) -> bool:
    """Return whether the platform has done nothing, and never will for the same call."""
    return error.vendor_status in _REFUSED and not error.retryable


def product_for(services: Services, app_id: str, bp_product_id: str) -> tuple[Product, WalletProduct]:
    """Return a product that can be bought by wallet. Raises `ConfigInvalid`."""
    product = services.configs.required(PRODUCTS, app_id, bp_product_id).value
    if product.walletpay is None:
        raise ConfigInvalid(f"products {bp_product_id}: walletpay is not set")
    wallet_config(services, app_id, product.walletpay.config)
    return product, product.walletpay


def return_urls(
    services: Services, app_id: str, name: str, *, return_url: str | None = None, cancel_url: str | None = None
) -> tuple[str, str]:
    """Return the URLs for users who have approved or cancelled: those of the request, or else of the config.

    Raises `InvalidParameter` for a URL that is not allowed, and `ConfigInvalid` if there is none.
    """
    config = wallet_config(services, app_id, name)
    given = {"return_url": return_url, "cancel_url": cancel_url}
    urls = []
    for field, url in given.items():
        if url is not None:
            urls.append(_allowed(field, url, config))
            continue
        default: str | None = getattr(config, field)
        default = default and resolve_url(default, sandbox_url=services.settings.sandbox_url)
        if not default:
            raise ConfigInvalid(f"walletpay {name}: {field} is not set")
        urls.append(default)
    return urls[0], urls[1]


def _allowed(field: str, url: str, config: WalletPay) -> str:
    """Return a URL of a request. Raises `InvalidParameter` unless it is one of the app's pages."""
    try:
        parts = urlsplit(url)
        is_host = (parts.hostname or "") in config.url_hosts and parts.port in {None, 443}
        is_own = parts.scheme == "https" and (is_host or parts.netloc in config.url_hosts)
        is_plain = "@" not in parts.netloc
    except ValueError:
        is_own = is_plain = False
    if not (is_own and is_plain and len(url) <= _URL_CHARACTERS and url.isascii() and url.isprintable()):
        raise InvalidParameter(f"{field} must begin with https:// and have a host of url_hosts of the config")
    if " " in url or "\\" in url:
        raise InvalidParameter(f"{field} must not contain spaces or backslashes")
    return url


def soon(now: datetime) -> datetime:
    """Return when to read back a row that may change at any time."""
    return now + CHECK_AGAIN
