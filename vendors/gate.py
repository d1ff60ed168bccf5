"""What this process knows of a vendor account: may it be called, how fast does it answer, what may hedging cost."""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client import Counter, Gauge

from streams.wire.errors import ServiceError
from vendors.breaker import Breaker, BreakerPolicy, Bulkhead, BulkheadFull
from vendors.errors import Empty, Refused, VendorError

SKIPPED = Counter("parley_breaker_skips", "Calls that were not made because a breaker was open", ["account"])
OPEN = Gauge("parley_breaker_open", "Whether the account's breaker is open", ["account"])
BUSY = Gauge("parley_bulkhead_busy", "Calls under way", ["account"])
WAITING = Gauge("parley_bulkhead_waiting", "Calls that wait for a place", ["account"])

Hedge = float | Literal["auto"]

_SAMPLES = 200
_SAMPLES_NEEDED = 50
_MINUTE_S = 60.0
_HEDGE_SHARE = 0.05
_OF_THE_REQUEST = frozenset({400, 404, 409, 413, 415, 422})
"""Refusals that say something about what was asked, not about the account."""


@dataclass(frozen=True, slots=True)
class GatePolicy:
    at_once: int = 200
    waiting: int = 1000
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)


class Gate:
    """One per account and process."""

    def __init__(self, account: str, policy: GatePolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self.policy = policy
        self.secret = ""
        """The account's key, to be kept out of words that the vendor says."""
        self._clock = clock
        self._breaker = Breaker(policy.breaker, clock)
        self._bulkhead = Bulkhead(policy.at_once, policy.waiting)
        self._first_outputs: deque[float] = deque(maxlen=_SAMPLES)
        self._calls: deque[float] = deque()
        self._hedges: deque[float] = deque()
        self._skipped = SKIPPED.labels(account)
        bulkhead, breaker = self._bulkhead, self._breaker
        OPEN.labels(account).set_function(lambda: breaker.open)
        BUSY.labels(account).set_function(lambda: bulkhead.busy)
        WAITING.labels(account).set_function(lambda: bulkhead.waiting)

    def take(self) -> Callable[[], None] | None:
        """As `enter`, where nothing is to be asked or waited for; else none."""
        if self._breaker.tripped or not self._bulkhead.take():
            return None
        self._count_call()
        return self._bulkhead.leave

    async def enter(self, vendor: str) -> Callable[[], None]:
        """Take a place for one call, which what is returned gives back.

        `Refused` while the breaker is open or too many wait. What became of the call is told by `answered` or
        `failed`; a call without either was given up.
        """
        probe = self._breaker.tripped
        if not self._breaker.take():
            self._skipped.inc()
            raise Refused(vendor, "is not asked for a while: its calls failed", retryable=True)
        try:
            await self._bulkhead.enter()
        except BaseException as error:
            if probe:
                self._breaker.gave_up()
            if isinstance(error, BulkheadFull):
                raise Refused(vendor, "has too many calls waiting", retryable=True) from None
            raise
        self._count_call()
        return self._leave_probing if probe else self._bulkhead.leave

    def _leave_probing(self) -> None:
        self._bulkhead.leave()
        self._breaker.gave_up()

    def _count_call(self) -> None:
        now = self._clock()
        self._calls.append(now)
        if self._calls[0] < now - _MINUTE_S:
            self._calls.popleft()  # so that it does not grow where nobody asks for a hedge

    def answered(self, first_output_s: float) -> None:
        self._first_outputs.append(first_output_s)
        self._breaker.succeeded()

    def failed(self, error: ServiceError) -> None:
        # nor is an empty answer the account's: what was asked may have no other
        if isinstance(error, VendorError) and not (isinstance(error, Empty) or error.status in _OF_THE_REQUEST):
            self._breaker.failed()

    def hedge_after_s(self, hedge: Hedge | None) -> float | None:
        """When a second call is due; `auto`: the 95th percentile of first outputs, once there are enough."""
        if hedge != "auto":
            return hedge
        if len(self._first_outputs) < _SAMPLES_NEEDED:
            return None
        ordered = sorted(self._first_outputs)
        return ordered[math.ceil(len(ordered) * 0.95) - 1]

    def take_hedge(self) -> bool:
        """Whether one more call than needed may be made to this account now; counted when it may."""
        now = self._clock()
        for times in (self._calls, self._hedges):
            while times and times[0] < now - _MINUTE_S:
                times.popleft()
        if self._breaker.open or len(self._hedges) >= max(1, int(_HEDGE_SHARE * len(self._calls))):
            return False
        self._hedges.append(now)
        return True
