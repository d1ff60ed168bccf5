"""Rate limits: counted in Valkey for all processes together, or per process while Valkey is unavailable."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import structlog

from storage.configs.kinds.limits import Rate
from storage.valkey.client import Valkey, map_errors
from streams.refusals import REFUSED
from streams.wire.errors import RateLimited, StoreError

log = structlog.get_logger()

_LOCAL_COUNTERS = 10_000


@dataclass(frozen=True, slots=True)
class Count:
    """The state of a rate limit after a call was counted."""

    name: str
    rate: Rate
    wait_s: float
    """Seconds until the call would be allowed; 0 if it is allowed now."""
    used: float
    """How many calls of the rate are used up. It falls with time."""

    def check(self) -> None:
        """Raise `RateLimited` with the time to wait if the call exceeded the rate."""
        if self.wait_s > 0:
            REFUSED.add(1, self.name)
            message = f"more than {self.rate.count} calls in {self.rate.per_s:g} s"
            raise RateLimited(message, retry_after_s=self.wait_s)

    @property
    def remaining(self) -> int:
        return max(0, int(self.rate.count - self.used))

    @property
    def reset_s(self) -> float:
        """Seconds until all calls of the rate are available again."""
        return self.used * self.rate.per_s / self.rate.count


@dataclass(frozen=True, slots=True)
class Bucket:
    """One of several rates that a call is counted against: the calls by `who` under `name`."""

    name: str
    rate: Rate
    who: str


class RateLimiter:
    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._local = LocalLimiter()
        self._unavailable = False

    async def count(self, rate: Rate, *, app_id: str, name: str, who: str, calls: Literal[0, 1] = 1) -> Count:
        """Count one call by `who`. `Count.check()` raises an error if it is not allowed.

        With `calls=0`, no call is counted, and `Count.check()` raises an error if one would not be allowed.
        """
        bucket = Bucket(name, rate, who)
        [count] = await self._count([bucket], [self._valkey.key(f"{app_id}:{who}", "rate", name)], calls)
        return count

    async def count_all(
        self, buckets: Sequence[Bucket], *, app_id: str, tag: str, calls: Literal[-1, 0, 1] = 1
    ) -> list[Count]:
        """Count one call in all of `buckets`, or in none if one of them does not allow it.

        With `calls=0`, count none. With `calls=-1`, take the call back. Buckets that are counted together have the
        same `tag`.
        """
        keys = [self._valkey.key(f"{app_id}:{tag}", "rate", bucket.name, bucket.who) for bucket in buckets]
        return await self._count(buckets, keys, calls)

    async def _count(self, buckets: Sequence[Bucket], keys: Sequence[str], calls: Literal[-1, 0, 1]) -> list[Count]:
        rates: list[float] = [
            number
            for bucket in buckets
            for number in (bucket.rate.per_s * 1000 / bucket.rate.count, bucket.rate.count)
        ]
        try:
            with map_errors():
                found = await self._valkey.run("limit", keys=keys, args=[calls, *rates])
        except StoreError as error:
            self._log_change(unavailable=True, error=error)
            return self._count_locally(buckets, keys, calls)
        self._log_change(unavailable=False)
        return [
            Count(bucket.name, bucket.rate, float(wait_ms) / 1000, float(used))
            for bucket, (wait_ms, used) in zip(buckets, found, strict=True)
        ]

    def _count_locally(
        self, buckets: Sequence[Bucket], keys: Sequence[str], calls: Literal[-1, 0, 1]
    ) -> list[Count]:
        local, given = self._local, list(zip(buckets, keys, strict=True))
        waits = [0.0 if calls < 0 else local.wait_s(bucket.rate, key, calls=0) for bucket, key in given]
        if not any(waits):
            for bucket, key in given:
                local.wait_s(bucket.rate, key, calls=calls)
        return [
            Count(bucket.name, bucket.rate, wait_s, min(bucket.rate.count, 2 * local.used(key)))
            for (bucket, key), wait_s in zip(given, waits, strict=True)
        ]

    def _log_change(self, *, unavailable: bool, error: StoreError | None = None) -> None:
        if unavailable != self._unavailable:
            self._unavailable = unavailable
            log.warning(
                "limits.counted_locally" if unavailable else "limits.counted_in_valkey", error=str(error or "")
            )


class LocalLimiter:
    """Rate limits counted in this process, at half the rate because processes do not see each other's counts.

    At most `counters` keys are kept; the least recently used one is dropped first.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, counters: int = _LOCAL_COUNTERS) -> None:
        self._clock = clock
        self._counters = counters
        self._buckets: OrderedDict[str, tuple[float, float, float]] = OrderedDict()
        """Calls in the bucket of a key, the time of that count, and the seconds in which one call leaks."""

    def wait_s(self, rate: Rate, key: str, *, calls: Literal[-1, 0, 1] = 1) -> float:
        """Count one call and return 0, or return how long to wait. The algorithm is that of `lua/limit.lua`.

        With `calls=0`, no call is counted. With `calls=-1`, one is taken back.
        """
        now = self._clock()
        interval_s = 2 * rate.per_s / rate.count
        burst = max(1, rate.count // 2)
        used, counted_at, leak_s = self._buckets.get(key, (0.0, now, interval_s))
        remaining = max(0.0, used - (now - counted_at) / min(interval_s, leak_s))
        used = min(remaining, burst - 1 if interval_s < leak_s else burst)
        wait_s = 0 if calls < 0 else (used + 1 - burst) * interval_s
        if wait_s <= 1e-5:
            wait_s, used = 0, max(0.0, used + calls)
        self._buckets[key] = used, now, interval_s
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._counters:
            self._buckets.popitem(last=False)
        return wait_s

    def used(self, key: str) -> float:
        """Return how many calls were in the bucket at the last count."""
        return self._buckets[key][0]
