"""The field `quota` of strategies: what each call uses of a user's assets."""

from pydantic import Field

from streams.wire.model import Model

MAX_UNITS = 1_000_000_000


class Quota(Model):
    asset: str = Field(min_length=1, max_length=64)
    """The asset, as products name it, whose units are used. A consumable, or a subscription with units."""
    amount: int = Field(default=1, ge=1, le=MAX_UNITS)
    """How many units one call uses."""
    free_per_day: int = Field(default=0, ge=0, le=MAX_UNITS)
    """How many units each user may use for free on a day, from midnight UTC. They are used before those of the
    asset. Strategies with the same asset share them."""
