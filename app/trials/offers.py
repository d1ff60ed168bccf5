"""A price of a draft at a payment platform, and the calls that try it."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from app.trials.terms import PriceTrial
from streams.wire.errors import ServiceError
from vendors.errors import TimedOut, Unreachable


@dataclass(frozen=True, slots=True)
class Offer:
    row: PriceTrial
    """What is known before the platform is called."""
    ask: Callable[[], Awaitable[dict[str, Any]]] | None = None
    """Calls the platform, and returns the fields of `row` that it has found. Raises `ServiceError`. `None`: there
    is nothing to ask."""


@dataclass(frozen=True, slots=True)
class Tried:
    row: PriceTrial
    unreachable: bool = False
    """Whether the platform did not answer, so that it is not asked again."""


async def try_offer(offer: Offer) -> Tried:
    if offer.ask is None:
        return Tried(offer.row)
    began = time.monotonic()
    found: dict[str, Any]
    unreachable = False
    try:
        found = await offer.ask()
    except ServiceError as error:
        found = {"error": f"{error.error_type}: {error.what}"}
        unreachable = isinstance(error, TimedOut | Unreachable)
    elapsed_ms = round((time.monotonic() - began) * 1000)
    return Tried(offer.row.model_copy(update={**found, "elapsed_ms": elapsed_ms}), unreachable)
