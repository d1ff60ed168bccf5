"""The only source of the real time for tests, so that a check finds each test that the calendar can influence.

`make test-dates` runs the tests that import this module, and others, at dates that are hard for calendars. Tests of
calendar dates move the clock of an app to a fixed time instead.
"""

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)


def epoch_s() -> float:
    return time.time()


def epoch_ms() -> int:
    return epoch_ns() // 1_000_000


def epoch_ns() -> int:
    return time.time_ns()
