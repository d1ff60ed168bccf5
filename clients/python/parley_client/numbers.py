"""Numbers in requests, which are whole where an app has measured them."""

import math

from parley_client.errors import invalid_parameter


def rounded(name: str, value: float) -> int:
    """Return a time that an app has measured as the server reads it, which is in whole units."""
    if not (math.isfinite(value) and value >= 0):
        raise invalid_parameter(f"{name} must be a finite number that is not negative")
    return math.floor(value + 0.5)
