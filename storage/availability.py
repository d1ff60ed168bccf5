"""Tracks whether a store is available, based on the results of regular calls, and logs every change.

The begin of an outage is the only error: alarms that count errors see one for each process and outage.
"""

import time
from collections.abc import Callable

import structlog
from prometheus_client import Gauge

from streams.metrics import HistogramMetric

log = structlog.get_logger()

AVAILABLE = Gauge("parley_store_available", "Whether calls of this process to the store succeed", ["store"])
SECONDS = HistogramMetric(
    "parley_store_seconds",
    "Time of a call to the store: of each heartbeat, and of storing a file",
    ["store"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
_unavailable: dict[str, set[str]] = {}
"""The locations of each store to which calls fail. A cluster has several."""

_STEADY_S = 1.0
"""How long no call may fail before the store counts as available again. Without it, a store that fails now and then
would fill the log."""
_STEADY_PARTLY_S = 15.0
"""The same for failures with `partly=True`. Longer than the time between two writes of an idle process."""
_NEXT_CAUSE_S = 10.0
"""Minimum time between two log lines for different causes of one outage."""


def stores_away() -> list[str]:
    """Return the names of the stores to which calls of this process fail, sorted."""
    return sorted(store for store, locations in _unavailable.items() if locations)


class Availability:
    """The availability of one store, or of one node of it, as this process sees it.

    `location` says for operators where the store is. It contains no password.
    """

    def __init__(self, store: str, *, location: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.cause = ""
        """Why the store is unavailable; empty if it is available."""
        self._store = store
        self._location = location
        self._clock = clock
        self._steady_at = self._since = self._logged_at = 0.0
        self.forget()

    def failed(self, cause: str, detail: object = "", *, partly: bool = False) -> None:
        """Record that a call failed because of the store.

        `detail` is only logged. `partly` means that other calls may still succeed.
        """
        now = self._clock()
        self._steady_at = now + (_STEADY_PARTLY_S if partly else _STEADY_S)
        if cause == self.cause or (self.cause and now < self._logged_at + _NEXT_CAUSE_S):
            return
        bound = log.bind(store=self._store, location=self._location, cause=cause, detail=str(detail))
        if self.cause:
            bound.warning("store.cause_changed", away_s=round(now - self._since, 1))
        else:
            self._since = now
            bound.error("store.unavailable")
        _unavailable.setdefault(self._store, set()).add(self._location)
        AVAILABLE.labels(self._store).set(0)
        self.cause, self._logged_at = cause, now

    def worked(self) -> None:
        """Record that a call succeeded."""
        if not self.cause:
            return
        now = self._clock()
        if now >= self._steady_at:
            self.forget()

    def forget(self) -> None:
        """Record that the location is available, or that the store does not need it any more."""
        if self.cause:
            away_s = round(self._clock() - self._since, 1)
            log.info("store.available", store=self._store, cause=self.cause, away_s=away_s)
            self.cause = ""
        lost = _unavailable.setdefault(self._store, set())
        lost.discard(self._location)
        AVAILABLE.labels(self._store).set(0 if lost else 1)
