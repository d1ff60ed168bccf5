"""The field `quota` of strategies: the assets that each call uses."""

from pydantic import Field

from streams.wire.model import Model

MAX_UNITS = 1_000_000_000


class Quota(Model):
    asset: str = Field(min_length=1, max_length=64)
    """The asset whose units are used, by its name in products. It is a consumable, or a subscription with units."""
    amount: int = Field(default=1, ge=1, le=MAX_UNITS)
    """The number of units that one call uses."""
    free_per_day: int = Field(default=0, ge=0, le=MAX_UNITS)
    """The number of units that each user may use for free per day, from midnight UTC. They are used before the
    units of the asset. Strategies with the same asset share them."""
