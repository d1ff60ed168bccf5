"""Kind `walletpay`: our app at the wallet platform PayPal."""

from typing import Annotated

from pydantic import Field, SecretStr

from storage.configs.kinds.base import DAY_S, ConfigKind
from storage.configs.kinds.sign_in import Pem
from storage.configs.kinds.urls import BaseUrl, SandboxUrl
from storage.configs.kinds.vendor_accounts import CallLimits
from streams.wire.model import Matches

_Id = Annotated[str, Matches(r"^[!-~]{1,255}$", "must be 1 to 255 printable ASCII characters without spaces")]
_Host = Annotated[
    str,
    Field(max_length=260),
    Matches(r"^[a-z0-9.-]+(:[0-9]{1,5})?$", "must be a host name in lower case, with or without a port"),
]


class PayPalApp(CallLimits):
    """Our app at PayPal, for every kind that describes one."""

    base_url: BaseUrl | None = None
    """Replaces the address of PayPal's interface. Default: `https://api-m.paypal.com`. In development, `{sandbox}`
    stands for the address of the sandbox."""
    client_id: _Id
    """The id of the app."""
    client_secret: SecretStr
    """The secret of the app."""
    webhook_id: str = Field(default="", max_length=50)
    """PayPal's id of the app's webhook, which binds events to it. Without it, events cannot be verified."""
    certificate_hosts: list[_Host] = Field(default_factory=list, max_length=20)
    """The hosts from which the certificates of webhooks are fetched, such as `api.paypal.com`. Without a host, the
    server asks PayPal to verify each webhook."""
    certificate_ca: Pem = ""
    """Certificates in PEM format that replace the public authorities, for development. They verify the connections
    to `certificate_hosts` and the certificates of webhooks."""


class WalletPay(PayPalApp):
    return_url: SandboxUrl | None = None
    """URL to which users return after they have approved a payment, unless a request names another URL."""
    cancel_url: SandboxUrl | None = None
    """URL to which users return after they have cancelled a payment, unless a request names another URL."""
    url_hosts: list[_Host] = Field(default_factory=list, max_length=100)
    """The hosts that such URLs in requests may have. A host without a port stands for all its ports."""
    brand_name: str = Field(default="", max_length=127)
    """Replaces the name of the business on PayPal's pages."""
    grace_s: int = Field(default=0, ge=0, le=366 * DAY_S)
    """Seconds for which assets remain after the end of the paid period while a subscription is suspended."""
    renewal_tolerance_s: int = Field(default=DAY_S, ge=0, le=31 * DAY_S)
    """Seconds for which assets remain after the time at which PayPal is to bill an active subscription next, while
    no payment has failed. PayPal bills at 10:00 UTC or later. At most two days and this time after the end of the
    last paid period. With 0, each renewal leaves a gap until its payment is read."""


WALLETPAY = ConfigKind("walletpay", "Wallet payments", WalletPay, addresses=("base_url",))
