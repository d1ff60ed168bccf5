"""Whether a store can be used: learned from the results of ordinary calls, and logged when it changes."""

import time
from collections.abc import Callable

import structlog

log = structlog.get_logger()

_STEADY_S = 1.0
"""How long no call may fail before a store counts as available again, so that a flapping one cannot fill the log."""
_STEADY_PARTLY_S = 15.0
"""The same if some calls succeed meanwhile. Longer than the time between two writes of an idle process."""
_NEXT_CAUSE_S = 10.0
"""The shortest time between two log lines that name different causes of one outage."""


class Availability:
    """The state of one store, as this process sees it. `cause`: why the store cannot be used, else empty."""

    def __init__(self, store: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.cause = ""
        self._store = store
        self._clock = clock
        self._steady_at = self._since = self._logged_at = 0.0

    def failed(self, cause: str, detail: object = "", *, partly: bool = False) -> None:
        """Record that the store failed a call. `detail` goes to the log only. `partly`: other calls succeed."""
        now = self._clock()
        self._steady_at = now + (_STEADY_PARTLY_S if partly else _STEADY_S)
        if cause == self.cause or (self.cause and now < self._logged_at + _NEXT_CAUSE_S):
            return
        self._since = self._since if self.cause else now
        self.cause, self._logged_at = cause, now
        log.warning("store.unavailable", store=self._store, cause=cause, detail=str(detail))

    def worked(self) -> None:
        """Record that a call succeeded."""
        if not self.cause:
            return
        now = self._clock()
        if now >= self._steady_at:
            log.info("store.available", store=self._store, cause=self.cause, away_s=round(now - self._since, 1))
            self.cause = ""
