"""Kind `payouts`: our app at the payout platform PayPal, and the limits of withdrawals."""

from typing import Literal

from pydantic import Field

from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.products import MAX_AMOUNT
from storage.configs.kinds.walletpay import PayPalApp
from streams.wire.model import Model
from streams.wire.money import Currency


class PayoutLimits(Model):
    """In minor units of the currency. `null`: no limit."""

    per_call: int | None = Field(default=None, ge=1, le=MAX_AMOUNT)
    """The largest amount of one withdrawal."""
    per_day: int | None = Field(default=None, ge=1, le=MAX_AMOUNT)
    """The largest sum of a user's withdrawals in one day."""


class Payouts(PayPalApp):
    platform: str = Field(default="paypal", min_length=1, max_length=64)
    """The name of the platform in withdrawals."""
    merchant_id: str = Field(default="", max_length=255)
    """Our merchant number in withdrawals."""
    currency: Currency = "USD"
    """The ISO 4217 code of the currency of withdrawals in either case, such as USD."""
    receiver: Literal["email"] = "email"
    """The receiver of payouts. `email`: the proven email address of the user."""
    limits: PayoutLimits = PayoutLimits()
    """Limits on the amounts that users withdraw."""


PAYOUTS = ConfigKind("payouts", "Payouts", Payouts, addresses=("base_url",))
