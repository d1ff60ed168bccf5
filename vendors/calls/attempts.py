"""Attempts: calls of a strategy that `vendors/calls/fallback.py` tries, and the records of their outcomes."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from streams.kept_errors import copy_of
from streams.wire.errors import ServiceError
from vendors.calls import metrics
from vendors.calls.gate import Gate, GatePolicy, Hedge
from vendors.calls.hedging import Clock
from vendors.calls.meter import FREE, Meter, UnitPrice
from vendors.protocols import Usage

Stage = Literal["stt", "llm", "tts", "assess"]
Outcome = Literal["won", "failed", "hedged", "canceled"]
Item = TypeVar("Item")
Opener = Callable[[], AbstractAsyncContextManager[AsyncIterator[Item]]]


@dataclass(slots=True)
class Attempt(Generic[Item]):
    """One attempt of a strategy. `open` may raise immediately, which counts as a failed attempt.

    The first item for which `is_output` returns true is the first output. Items before it are buffered.

    `first_output_s`, `between_s`: the time limits for the first output and for each item after it.
    `hedge`: the delay without output after which the next attempt is started in parallel.
    `clock`: for attempts that consume input. Returns when the input ends; the limit for the first output and the
    hedge delay start then. Its result is added to `first_output_s`, in seconds.
    `early`: whether the vendor is called before the input ends.
    `model`: the vendor's name of the model, if the strategy names one.
    """

    strategy: str
    stage: Stage
    vendor: str
    open: Opener[Item]
    is_output: Callable[[Item], bool]
    first_output_s: float
    between_s: float
    hedge: Hedge | None = None
    gate: Gate = field(default_factory=lambda: Gate("none", GatePolicy()))
    meter: Callable[[], Meter] = Meter
    price: UnitPrice = FREE
    clock: Clock | None = None
    early: bool = True
    model: str = ""


class Failure(NamedTuple):
    """The error of an attempt. An exception would refer to the frames in which it was raised."""

    error_type: str
    message: str
    retryable: bool
    retry_after_s: float | None


@dataclass(slots=True)
class AttemptRecord:
    """The outcome of one attempt: timings, usage, error."""

    strategy: str
    stage: Stage
    vendor: str
    meter: Meter
    price: UnitPrice
    started_at: float = 0
    """The start time by `time.monotonic()`, which is also the loop's clock."""
    accepted: bool = False
    """Whether the vendor accepted the call. A refused call has no usage."""
    outcome: Outcome = "canceled"
    failure: Failure | None = None
    """Set if the attempt has failed."""
    first_output_ms: int | None = None
    elapsed_ms: int = 0
    model: str = ""
    ended: bool = False
    """Whether `outcome`, `failure` and `elapsed_ms` are final."""

    @property
    def usage(self) -> Usage:
        return self.meter.usage if self.accepted else Usage(0, 0)

    @property
    def cost(self) -> Decimal:
        usage = self.usage
        return self.price.input * usage.input_token + self.price.output * usage.output_token

    def as_error_detail(self) -> dict[str, Any]:
        """Return the entry for `extra.attempts` of an error."""
        assert self.failure is not None, "only failed attempts have an error"
        return {
            "strategy": self.strategy,
            "stage": self.stage,
            "error_type": self.failure.error_type,
            "message": self.failure.message,
            "elapsed_ms": self.elapsed_ms,
        }


def failed_attempt(strategy: str, stage: Stage, fault: ServiceError) -> Attempt[Any]:
    """Return an attempt that fails with `fault`, for a strategy that has no client."""

    def refuse() -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        raise copy_of(fault)  # It is raised by many streams.

    return Attempt(strategy, stage, metrics.NO_VENDOR, refuse, lambda _: True, first_output_s=1, between_s=1)
