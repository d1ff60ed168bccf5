"""What strategies of all kinds share: whom they call, how long they wait, what it costs."""

from typing import Annotated, Any, Literal

from pydantic import Field

from storage.kinds.base import HOUR_S
from streams.wire.model import Model


class Waits(Model):
    """How long an attempt may take before the next strategy is tried, in seconds."""

    connect_s: float = Field(default=5, gt=0, le=HOUR_S)
    first_output_s: float = Field(default=10, gt=0, le=HOUR_S)
    between_s: float = Field(default=20, gt=0, le=HOUR_S)


class Price(Model):
    """Of one unit, in the app's currency: a token, a code point spoken, a second heard."""

    input: float = Field(default=0, ge=0, le=1_000_000)
    output: float = Field(default=0, ge=0, le=1_000_000)


OnAbandon = Literal["cancel", "drain"]
"""When nobody reads a stream any more and nobody may come back: its vendors' calls are closed at once and the
record stays cut; or it plays to its end unseen, so that what the vendors bill is known exactly."""


class VendorCall(Model):
    """A model of a vendor, reached by an account."""

    account: str
    """Name of a config of kind `vendor_accounts`."""
    model: str = ""
    options: dict[str, Any] = Field(default_factory=dict)
    """What only this vendor knows; checked by its client."""
    waits: Waits = Waits()
    price: Price = Price()
    hedge_after_ms: Annotated[int, Field(ge=0, le=HOUR_S * 1000)] | Literal["auto"] | None = None
    """When the next strategy is started beside this one if it has shown no output; `auto`: by its own p95."""
