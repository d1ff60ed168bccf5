"""Periods begin at exactly the configured local time, also when the clocks change."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.leaderboards.periods import instant_of, start_of, starts_near
from storage.configs.kinds.leaderboards import Reset
from streams.wire.codec import from_rfc3339, rfc3339
from tests.calendar.hard_instants import walk

ZONES = sorted(available_timezones() - {"localtime", "Factory"})
BERLIN, APIA = "Europe/Berlin", "Pacific/Apia"


def start(moment: str, **reset: Any) -> str:
    at = from_rfc3339(moment)
    return rfc3339(start_of(starts_near(Reset(**reset), at), at))


@pytest.mark.parametrize(
    ("moment", "expected", "reset"),
    [
        ("2026-11-23T03:59:59Z", "2026-11-22T04:00:00Z", {"every": "day", "at": "04:00"}),
        ("2026-11-23T04:00:00Z", "2026-11-23T04:00:00Z", {"every": "day", "at": "04:00"}),
        # Summer time begins in Berlin on March 29 2026 at 02:00, and ends on October 25 at 03:00.
        ("2026-03-29T12:00:00Z", "2026-03-29T02:00:00Z", {"every": "day", "at": "04:00", "time_zone": BERLIN}),
        ("2026-03-28T12:00:00Z", "2026-03-28T03:00:00Z", {"every": "day", "at": "04:00", "time_zone": BERLIN}),
        ("2026-10-25T12:00:00Z", "2026-10-25T03:00:00Z", {"every": "day", "at": "04:00", "time_zone": BERLIN}),
        # A time that is skipped: the first instant after the gap.
        ("2026-03-29T12:00:00Z", "2026-03-29T01:00:00Z", {"every": "day", "at": "02:30", "time_zone": BERLIN}),
        ("2026-03-29T00:59:59Z", "2026-03-28T01:30:00Z", {"every": "day", "at": "02:30", "time_zone": BERLIN}),
        # A time that comes twice: the first one.
        ("2026-10-25T12:00:00Z", "2026-10-25T00:30:00Z", {"every": "day", "at": "02:30", "time_zone": BERLIN}),
        ("2026-10-25T01:30:00Z", "2026-10-25T00:30:00Z", {"every": "day", "at": "02:30", "time_zone": BERLIN}),
        # Lord Howe Island moves its clocks by half an hour, at 02:00 on October 4 2026.
        ("2026-10-04T12:00:00Z", "2026-10-03T15:30:00Z",
         {"every": "day", "at": "02:10", "time_zone": "Australia/Lord_Howe"}),
        # Samoa had no December 30 2011.
        ("2011-12-30T10:30:00Z", "2011-12-30T10:00:00Z", {"every": "day", "at": "04:00", "time_zone": APIA}),
        ("2011-12-30T14:00:00Z", "2011-12-30T14:00:00Z", {"every": "day", "at": "04:00", "time_zone": APIA}),
        ("2026-11-23T03:00:00Z", "2026-11-23T03:00:00Z", {"every": "week", "at": "04:00", "time_zone": BERLIN}),
        ("2026-11-23T02:59:59Z", "2026-11-16T03:00:00Z", {"every": "week", "at": "04:00", "time_zone": BERLIN}),
        ("2026-11-23T02:59:59Z", "2026-11-22T00:00:00Z", {"every": "week", "weekday": 7}),
        # The last day of a shorter month.
        ("2028-02-29T12:00:00Z", "2028-02-29T00:00:00Z", {"every": "month", "day": 31}),
        ("2026-03-15T12:00:00Z", "2026-02-28T00:00:00Z", {"every": "month", "day": 30}),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", {"every": "month"}),
        ("2025-12-31T23:59:59Z", "2025-12-01T00:00:00Z", {"every": "month"}),
    ],
)  # fmt: skip
def test_period_of_a_moment(moment: str, expected: str, reset: dict[str, Any]) -> None:
    assert start(moment, **reset) == expected


# 02:30 is a time that the changes to daylight-saving time skip, and that Berlin's change back repeats.
BEGAN = {
    # At 02:30 in New York, at 02:30 in Berlin, on Mondays, and on the last day of the month.
    "2027-01-28T12:00:00Z": ("2027-01-28T07:30", "2027-01-28T01:30", "2027-01-25T00:00", "2026-12-31T00:00"),
    "2027-01-29T12:00:00Z": ("2027-01-29T07:30", "2027-01-29T01:30", "2027-01-25T00:00", "2026-12-31T00:00"),
    "2027-01-30T12:00:00Z": ("2027-01-30T07:30", "2027-01-30T01:30", "2027-01-25T00:00", "2026-12-31T00:00"),
    "2027-01-31T12:00:00Z": ("2027-01-31T07:30", "2027-01-31T01:30", "2027-01-25T00:00", "2027-01-31T00:00"),
    "2027-02-28T12:00:00Z": ("2027-02-28T07:30", "2027-02-28T01:30", "2027-02-22T00:00", "2027-02-28T00:00"),
    "2027-03-14T07:00:00Z": ("2027-03-14T07:00", "2027-03-14T01:30", "2027-03-08T00:00", "2027-02-28T00:00"),
    "2027-03-28T01:00:00Z": ("2027-03-27T06:30", "2027-03-28T01:00", "2027-03-22T00:00", "2027-02-28T00:00"),
    "2027-03-31T12:00:00Z": ("2027-03-31T06:30", "2027-03-31T00:30", "2027-03-29T00:00", "2027-03-31T00:00"),
    "2027-10-31T01:00:00Z": ("2027-10-30T06:30", "2027-10-31T00:30", "2027-10-25T00:00", "2027-10-31T00:00"),
    "2027-11-07T06:00:00Z": ("2027-11-06T06:30", "2027-11-07T01:30", "2027-11-01T00:00", "2027-10-31T00:00"),
    "2027-12-31T23:59:59Z": ("2027-12-31T07:30", "2027-12-31T01:30", "2027-12-27T00:00", "2027-12-31T00:00"),
    "2028-01-01T00:00:00Z": ("2027-12-31T07:30", "2027-12-31T01:30", "2027-12-27T00:00", "2027-12-31T00:00"),
    "2028-02-29T12:00:00Z": ("2028-02-29T07:30", "2028-02-29T01:30", "2028-02-28T00:00", "2028-02-29T00:00"),
}


def test_periods_of_hard_instants() -> None:
    resets: list[dict[str, Any]] = [
        {"every": "day", "at": "02:30", "time_zone": "America/New_York"},
        {"every": "day", "at": "02:30", "time_zone": BERLIN},
        {"every": "week", "weekday": 1},
        {"every": "month", "day": 31},
    ]
    for instant, expected in walk(BEGAN):
        assert [start(rfc3339(instant), **reset) for reset in resets] == [f"{began}:00Z" for began in expected]


RESETS = st.builds(
    Reset,
    every=st.sampled_from(["day", "week", "month"]),
    at=st.times().map(lambda time: f"{time:%H:%M}"),
    weekday=st.integers(1, 7),
    day=st.integers(1, 31),
    time_zone=st.sampled_from(ZONES),
)


@given(st.integers(157_766_400, 2_114_380_800), RESETS)
def test_every_moment_has_one_period(second: int, reset: Reset) -> None:
    moment = datetime.fromtimestamp(second, UTC)
    starts = starts_near(reset, moment)
    began = start_of(starts, moment)
    ends = min(start for start in starts if start > began)
    assert began <= moment < ends
    assert starts[0] < moment < starts[-1]
    longest = {"day": 2, "week": 8, "month": 33}[reset.every]
    assert ends - began <= timedelta(days=longest)
    # All moments of the period agree about it, from whichever side they look at it.
    for other in (began, ends - timedelta(microseconds=1)):
        assert start_of(starts_near(reset, other), other) == began
    assert start_of(starts_near(reset, ends), ends) == ends


@given(st.sampled_from(ZONES), st.dates(date(1975, 1, 1), date(2037, 1, 1)), st.integers(0, 1439))
def test_local_time_stands_for_its_first_instant(zone: str, day: date, minute: int) -> None:
    tz, local = ZoneInfo(zone), datetime(day.year, day.month, day.day, minute // 60, minute % 60)  # noqa: DTZ001
    found = instant_of(local, tz)
    shown = found.astimezone(tz).replace(tzinfo=None)
    before = (found - timedelta(seconds=1)).astimezone(tz).replace(tzinfo=None)
    if shown != local:  # It is in a gap, whose end is this instant.
        assert before < local < shown
        assert shown - before > timedelta(seconds=1)
    for minutes in range(1, 200, 7):  # No earlier instant shows it.
        earlier = found - timedelta(minutes=minutes)
        assert earlier.astimezone(tz).replace(tzinfo=None) != local
