"""Kind `cardpay`: our account at the card platform, which is Stripe."""

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from storage.configs.kinds.base import DAY_S, ConfigKind
from storage.configs.kinds.urls import BaseUrl
from storage.configs.kinds.vendor_accounts import CallLimits
from streams.wire.money import Currency


def _not_empty(secret: SecretStr) -> SecretStr:
    if not secret.get_secret_value():
        raise ValueError("must not be empty")
    return secret


_Secret = Annotated[SecretStr, AfterValidator(_not_empty)]


class CardPay(CallLimits):
    base_url: BaseUrl | None = None
    """Replaces the address of Stripe's API. Default: `https://api.stripe.com`. In development, `{sandbox}` stands
    for the address of the sandbox."""
    secret_key: _Secret
    """The key with which the server calls Stripe."""
    publishable_key: str = Field(default="", max_length=255)
    """The key with which apps call Stripe, for operators to look up."""
    webhook_secrets: list[_Secret] = Field(default_factory=list, max_length=10)
    """The secrets that sign webhooks. There are several while one replaces another. Without a secret, webhooks are
    refused."""
    currencies: list[Currency] = Field(default_factory=list, max_length=200)
    """The currencies of payments, as ISO 4217 codes in either case. Empty: all currencies of Stripe. A
    subscription has the currency of its price at Stripe."""
    renewal_tolerance_s: int = Field(default=DAY_S, ge=0, le=31 * DAY_S)
    """Seconds for which assets remain after the time at which Stripe is to bill the next period of a subscription,
    while no payment has failed. Stripe charges about an hour after a period has begun, so each renewal leaves a gap
    with 0."""
    debug: bool = False
    """Whether the debug endpoints, which pay with test cards, exist."""


CARDPAY = ConfigKind("cardpay", "Card payments", CardPay, addresses=("base_url",))
