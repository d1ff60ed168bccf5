"""The gate of a vendor account in this process: circuit breaker, bulkhead, latencies and the hedging budget."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from prometheus_client import Counter, Gauge

from streams.wire.errors import ServiceError
from vendors.calls.breaker import Breaker, BreakerPolicy, Bulkhead, BulkheadFull
from vendors.errors import Empty, Refused, TimedOut, VendorError

SKIPPED = Counter("parley_breaker_skips", "Calls that were not made because a breaker was open", ["account"])
OPEN = Gauge("parley_breaker_open", "Whether the account's breaker is open", ["account"])
BUSY = Gauge("parley_bulkhead_busy", "Calls in progress", ["account"])
WAITING = Gauge("parley_bulkhead_waiting", "Calls that wait for a slot", ["account"])

Hedge = float | Literal["auto"]
Result = TypeVar("Result")

_SAMPLES = 200
_SAMPLES_NEEDED = 50
_MINUTE_S = 60.0
_HEDGE_SHARE = 0.05
_REQUEST_FAULTS = frozenset({400, 404, 409, 413, 415, 422})
"""HTTP statuses caused by the request, which are not counted as failures of the account."""


@dataclass(frozen=True, slots=True)
class GatePolicy:
    concurrency: int = 200
    waiting: int = 1000
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)


class Admission:
    """The permission for one call through a gate. Its outcome counts for the breaker of the account.

    A call that the gate refuses has none, so it does not count.
    """

    __slots__ = ("_gate", "_probe")

    def __init__(self, gate: "Gate", *, probe: bool) -> None:
        self._gate = gate
        self._probe = probe
        """Whether the call is the probe of a half-open breaker and has no outcome yet."""

    def succeeded(self, first_output_s: float) -> None:
        self._gate.first_outputs.append(first_output_s)
        self._gate.breaker.succeeded(probe=self._probe)
        self._probe = False

    def failed(self, error: ServiceError) -> None:
        # An empty response does not count either: the request itself may be the cause.
        if isinstance(error, VendorError) and not (
            isinstance(error, Empty) or error.vendor_status in _REQUEST_FAULTS
        ):
            self._gate.breaker.failed(probe=self._probe)
            self._probe = False

    def release(self) -> None:
        """Release the slot of the call. A probe without an outcome is abandoned."""
        self._gate.bulkhead.release()
        if self._probe:
            self._gate.breaker.abandon()


class Gate:
    """All calls to one account pass its gate. Each process has one gate per account."""

    def __init__(self, account: str, policy: GatePolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self.policy = policy
        self.secret = ""
        """The account's key. It is removed from error messages of the vendor."""
        self._clock = clock
        self.breaker = Breaker(policy.breaker, clock)
        self.bulkhead = Bulkhead(policy.concurrency, policy.waiting)
        self.first_outputs: deque[float] = deque(maxlen=_SAMPLES)
        self._calls: deque[float] = deque()
        self._hedges: deque[float] = deque()
        self._skipped = SKIPPED.labels(account)
        bulkhead, breaker = self.bulkhead, self.breaker
        OPEN.labels(account).set_function(lambda: breaker.open)
        BUSY.labels(account).set_function(lambda: bulkhead.busy)
        WAITING.labels(account).set_function(lambda: bulkhead.waiting)

    def try_admit(self) -> Admission | None:
        """Like `admit`, but return `None` if the call would have to wait or the breaker is not closed."""
        if self.breaker.tripped or not self.bulkhead.try_acquire():
            return None
        self._count_call()
        return Admission(self, probe=False)

    async def admit(self, vendor: str) -> Admission:
        """Take a slot for one call, which reports its outcome and then releases the slot.

        Raise `Refused` while the breaker is open or too many calls wait.
        """
        probe = self.breaker.tripped
        if not self.breaker.allow():
            self._skipped.inc()
            raise Refused(vendor, "is skipped for now: its recent calls failed", retryable=True)
        try:
            await self.bulkhead.acquire()
        except BaseException as error:
            if probe:
                self.breaker.abandon()
            if isinstance(error, BulkheadFull):
                raise Refused(vendor, "has too many calls waiting", retryable=True) from None
            raise
        self._count_call()
        return Admission(self, probe=probe)

    async def call(self, vendor: str, send: Callable[[], Awaitable[Result]], *, within_s: float) -> Result:
        """Make the call `send`, which has one result, and count whether it succeeded.

        `within_s` limits the wait for a slot and the call together. Streams are called by
        `vendors/calls/fallback.py` instead, because they have several results.
        """
        began = self._clock()
        admission: Admission | None = None
        try:
            async with asyncio.timeout(within_s):
                admission = self.try_admit() or await self.admit(vendor)
                result = await send()
        except TimeoutError:
            timed_out = TimedOut(vendor, f"had no result within {within_s:g} s", retryable=True)
            if admission is not None:
                admission.failed(timed_out)
            raise timed_out from None
        except ServiceError as error:
            error.redact(self.secret)
            if admission is not None:
                admission.failed(error)
            raise
        else:
            admission.succeeded(self._clock() - began)
            return result
        finally:
            if admission is not None:
                admission.release()

    def _count_call(self) -> None:
        now = self._clock()
        self._calls.append(now)
        if self._calls[0] < now - _MINUTE_S:
            self._calls.popleft()  # Bounds the deque of an account that is never hedged.

    def hedge_after_s(self, hedge: Hedge | None) -> float | None:
        """Return the delay of the second call, or `None` for no second call.

        `auto` is the 95th percentile of the last times to the first output, or `None` with fewer than 50 samples.
        """
        if hedge != "auto":
            return hedge
        if len(self.first_outputs) < _SAMPLES_NEEDED:
            return None
        ordered = sorted(self.first_outputs)
        return ordered[math.ceil(len(ordered) * 0.95) - 1]

    def take_hedge(self) -> bool:
        """Return whether the budget allows a second call to this account now, and count it if so."""
        now = self._clock()
        for times in (self._calls, self._hedges):
            while times and times[0] < now - _MINUTE_S:
                times.popleft()
        if self.breaker.open or len(self._hedges) >= max(1, int(_HEDGE_SHARE * len(self._calls))):
            return False
        self._hedges.append(now)
        return True
