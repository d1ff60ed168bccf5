"""Rate limits: counted in Valkey for all processes, and more strictly in this one while Valkey is away."""

import time
from collections import OrderedDict
from collections.abc import Callable

import structlog

from storage.kinds.limits import Rate
from storage.redis import Valkey, map_errors
from streams.wire.errors import RateLimited, StoreError

log = structlog.get_logger()

_LOCAL_COUNTERS = 10_000


class RateLimiter:
    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._local = LocalLimiter()
        self._away = False

    async def check(self, rate: Rate, *, app_id: str, name: str, who: str) -> None:
        """Count one call of `who`, or raise `RateLimited` with the time to wait."""
        wait_s = await self._wait_s(rate, app_id=app_id, name=name, who=who)
        if wait_s > 0:
            raise RateLimited(f"more than {rate.count} calls in {rate.per_s:g} s", retry_after_s=wait_s)

    async def _wait_s(self, rate: Rate, *, app_id: str, name: str, who: str) -> float:
        key = self._valkey.key(f"{app_id}:{who}", "rate", name)
        try:
            with map_errors():
                wait_ms = await self._valkey.run(
                    "limit", keys=[key], args=[rate.per_s * 1000 / rate.count, rate.count]
                )
        except StoreError as error:
            self._note(away=True, error=error)
            return self._local.wait_s(rate, key)
        self._note(away=False)
        return float(wait_ms) / 1000

    def _note(self, *, away: bool, error: StoreError | None = None) -> None:
        if away != self._away:
            self._away = away
            log.warning("limits.counted_locally" if away else "limits.counted_again", error=str(error or ""))


class LocalLimiter:
    """The same count at half the rate, for processes cannot see each other's.

    Bounded: the counter that was not asked for longest gives way.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, counters: int = _LOCAL_COUNTERS) -> None:
        self._clock = clock
        self._counters = counters
        self._empty_at: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, rate: Rate, key: str) -> float:
        now = self._clock()
        interval_s = 2 * rate.per_s / rate.count
        burst = max(1, rate.count // 2)
        full_at = now + interval_s * burst
        stored = min(self._empty_at.get(key, now), full_at)  # later than that: the rate was lower
        empty_at = max(stored, now) + interval_s
        wait_s = empty_at - full_at
        if wait_s <= 1e-5:
            wait_s, stored = 0, empty_at
        self._empty_at[key] = stored
        self._empty_at.move_to_end(key)
        if len(self._empty_at) > self._counters:
            self._empty_at.popitem(last=False)
        return wait_s
