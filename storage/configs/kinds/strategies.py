"""Settings common to all kinds of strategies: the account to call, timeouts and prices."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from storage.configs.kinds.base import HOUR_S, Ref
from streams.wire.model import DecimalNumber, Model


class Timeouts(Model):
    """Timeouts of an attempt in seconds. When one expires, the attempt has failed."""

    connect_s: float = Field(default=5, ge=0.01, le=HOUR_S)
    """Timeout for the connection to the vendor."""
    first_output_s: float = Field(default=10, ge=0.01, le=HOUR_S)
    """Timeout for the first output. It begins anew with each part of a model's thoughts."""
    between_s: float = Field(default=20, ge=0.01, le=HOUR_S)
    """Maximum pause between two outputs or parts of thoughts."""


_MAX_PRICE = 1_000_000

PriceOfUnit = Annotated[
    DecimalNumber,
    Field(ge=0, le=_MAX_PRICE, json_schema_extra={"default": 0}),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": _MAX_PRICE}),
]
"""The price of one unit. It is much smaller than a minor unit of its currency, so it is a decimal and not
`Money`."""


class Price(Model):
    """Prices per unit in the app's currency. A unit is a token, a character spoken, or a second of audio input."""

    input: PriceOfUnit = Decimal(0)
    """Price of a unit that is sent to the vendor."""
    output: PriceOfUnit = Decimal(0)
    """Price of a unit that the vendor produces."""


OnAbandon = Literal["cancel", "drain"]
"""What happens to a stream that no reader follows after the grace time; see `on_abandon` of the strategies."""


class VendorCall(Model):
    """A vendor's model, and the account through which it is called.

    Subclasses define in their `account` which capability its platform must offer.
    """

    account: Annotated[str, Ref("vendor_accounts")]
    """Name of a config of kind `vendor_accounts`."""
    model: str = ""
    """The vendor's name of the model."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options specific to the vendor."""
    waits: Timeouts = Timeouts()
    """Timeouts of a call."""
    price: Price = Price()
    """Prices of a call, for the cost in `attempts` and `unit_price`."""
    hedge_after_ms: Annotated[int, Field(ge=0, le=HOUR_S * 1000)] | Literal["auto"] | None = None
    """Milliseconds without output after which the next strategy is started in parallel. `auto` uses the 95th
    percentile of recent times to the first output. If absent, no strategy is started in parallel."""
