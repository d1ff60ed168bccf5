"""The only source of the real time for tests. Tests of calendar dates move the clock of an app to a fixed time.

`make test-dates` runs the tests that dates influence at dates that are hard for calendars. They are found by
`tests/calendar/calendar_tests.py`.
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
