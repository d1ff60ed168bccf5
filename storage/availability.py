"""Tracks whether a store is available, based on the results of regular calls, and logs every change."""

import time
from collections.abc import Callable

import structlog
from prometheus_client import Gauge

log = structlog.get_logger()

AVAILABLE = Gauge("parley_store_available", "Whether calls of this process to the store succeed", ["store"])

_STEADY_S = 1.0
"""How long no call may fail before the store counts as available again. Without it, a store that fails now and then
would fill the log."""
_STEADY_PARTLY_S = 15.0
"""The same for failures with `partly=True`. Longer than the time between two writes of an idle process."""
_NEXT_CAUSE_S = 10.0
"""Minimum time between two log lines for different causes of one outage."""


class Availability:
    """The availability of one store, as this process sees it.

    `location` says for operators where the store is. It contains no password.
    """

    def __init__(self, store: str, *, location: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.cause = ""
        """Why the store is unavailable; empty if it is available."""
        self._store = store
        self._location = location
        self._clock = clock
        self._steady_at = self._since = self._logged_at = 0.0
        AVAILABLE.labels(store).set(1)

    def failed(self, cause: str, detail: object = "", *, partly: bool = False) -> None:
        """Record that a call failed because of the store.

        `detail` is only logged. `partly` means that other calls may still succeed.
        """
        now = self._clock()
        self._steady_at = now + (_STEADY_PARTLY_S if partly else _STEADY_S)
        if cause == self.cause or (self.cause and now < self._logged_at + _NEXT_CAUSE_S):
            return
        self._since = self._since if self.cause else now
        AVAILABLE.labels(self._store).set(0)
        self.cause, self._logged_at = cause, now
        log.warning(
            "store.unavailable", store=self._store, location=self._location, cause=cause, detail=str(detail)
        )

    def worked(self) -> None:
        """Record that a call succeeded."""
        if not self.cause:
            return
        now = self._clock()
        if now >= self._steady_at:
            log.info("store.available", store=self._store, cause=self.cause, away_s=round(now - self._since, 1))
            self.cause = ""
            AVAILABLE.labels(self._store).set(1)
