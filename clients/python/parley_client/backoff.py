"""When a request is repeated: exponential backoff with jitter, and never earlier than the server asks for."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_MAX_RETRY_AFTER_S = 86_400.0
_HTTP_DATE = re.compile(r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT", re.ASCII)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delays between attempts, in seconds."""

    first_s: float = 0.4
    longest_s: float = 8.0
    begin_s: float = 20.0
    """A request without a response, or to which the server says that it is busy, is repeated for this long."""
    resume_s: float = 150.0
    """A stream that makes no progress is resumed for this long. It can be read for 120 s after its end."""

    def delay_s(self, tries: int, retry_after: float | None) -> float:
        """Return the delay after attempt number `tries`, counted from 0."""
        longest = min(self.longest_s, self.first_s * 2.0**tries)
        return max(longest * random.uniform(0.5, 1.0), retry_after or 0.0)  # noqa: S311 - it need not be secret


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a server wants the request to be repeated, at most a day.

    None: it has not said.
    """
    value = headers.get("Retry-After", "")
    if value.isascii() and value.isdecimal():
        return min(float(value), _MAX_RETRY_AFTER_S)
    if (until := _time_of(value)) is None:
        return None
    now = _time_of(headers.get("Date", "")) or datetime.now(UTC)  # Clocks of clients are often wrong.
    return min(max((until - now).total_seconds(), 0.0), _MAX_RETRY_AFTER_S)


def _time_of(value: str) -> datetime | None:
    try:
        return parsedate_to_datetime(value) if _HTTP_DATE.fullmatch(value) else None
    except ValueError:
        return None


class Attempts:
    """Counts the failed attempts since the last progress, and says how long to wait before the next one."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self.progress()

    def progress(self) -> None:
        self._failing_since: float | None = None
        self._tries = 0

    def delay_s(self, now: float, *, within_s: float, retry_after: float | None) -> float | None:
        """Return the delay before the next attempt. None: attempts would have failed for longer than `within_s`."""
        if self._failing_since is None:
            self._failing_since = now
        delay = self._backoff.delay_s(self._tries, retry_after)
        self._tries += 1
        return delay if now + delay - self._failing_since <= within_s else None
