"""Calendar periods: parsing, and their ends."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import rfc3339
from streams.wire.period import Period
from tests.calendar.hard_instants import walk


@pytest.mark.parametrize(
    ("text", "months", "days"),
    [("P1M", 1, 0), ("P1Y", 12, 0), ("P2W", 0, 14), ("P7D", 0, 7), ("P1Y6M", 18, 0), ("P1M1W1D", 1, 8)],
)
def test_a_period_is_read(text: str, months: int, days: int) -> None:
    assert Period.parse(text) == Period(months, days)


@pytest.mark.parametrize(
    "text", ["", "P", "1M", "P1", "P0M", "P1M ", "PT1H", "P-1M", "P1.5M", "P11Y", "P\uff11M", "p1m"]
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        Period.parse(text)


@pytest.mark.parametrize(
    ("start", "text", "end"),
    [
        ((2026, 1, 31), "P1M", (2026, 2, 28)),
        ((2024, 1, 31), "P1M", (2024, 2, 29)),
        ((2024, 2, 29), "P1Y", (2025, 2, 28)),
        ((2026, 12, 15), "P1M", (2027, 1, 15)),
        ((2026, 11, 30), "P3M", (2027, 2, 28)),
        ((2026, 2, 20), "P2W", (2026, 3, 6)),
    ],
)
def test_a_period_ends_on_the_same_day_or_on_the_last_of_the_month(
    start: tuple[int, int, int], text: str, end: tuple[int, int, int]
) -> None:
    assert Period.parse(text).after(datetime(*start, 12, 30, tzinfo=UTC)) == datetime(*end, 12, 30, tzinfo=UTC)


A_MONTH_AND_A_YEAR_LATER = {
    "2027-01-28T12:00:00Z": ("2027-02-28T12:00:00Z", "2028-01-28T12:00:00Z"),
    "2027-01-29T12:00:00Z": ("2027-02-28T12:00:00Z", "2028-01-29T12:00:00Z"),
    "2027-01-30T12:00:00Z": ("2027-02-28T12:00:00Z", "2028-01-30T12:00:00Z"),
    "2027-01-31T12:00:00Z": ("2027-02-28T12:00:00Z", "2028-01-31T12:00:00Z"),
    "2027-02-28T12:00:00Z": ("2027-03-28T12:00:00Z", "2028-02-28T12:00:00Z"),
    "2027-03-14T07:00:00Z": ("2027-04-14T07:00:00Z", "2028-03-14T07:00:00Z"),
    "2027-03-28T01:00:00Z": ("2027-04-28T01:00:00Z", "2028-03-28T01:00:00Z"),
    "2027-03-31T12:00:00Z": ("2027-04-30T12:00:00Z", "2028-03-31T12:00:00Z"),
    "2027-10-31T01:00:00Z": ("2027-11-30T01:00:00Z", "2028-10-31T01:00:00Z"),
    "2027-11-07T06:00:00Z": ("2027-12-07T06:00:00Z", "2028-11-07T06:00:00Z"),
    "2027-12-31T23:59:59Z": ("2028-01-31T23:59:59Z", "2028-12-31T23:59:59Z"),
    "2028-01-01T00:00:00Z": ("2028-02-01T00:00:00Z", "2029-01-01T00:00:00Z"),
    "2028-02-29T12:00:00Z": ("2028-03-29T12:00:00Z", "2029-02-28T12:00:00Z"),
}


def test_months_and_years_end_in_time_from_each_hard_instant() -> None:
    for instant, expected in walk(A_MONTH_AND_A_YEAR_LATER):
        assert tuple(rfc3339(Period.parse(text).after(instant)) for text in ("P1M", "P1Y")) == expected


@given(
    st.datetimes(timezones=st.just(UTC)).filter(lambda at: at.year < 9000), st.integers(0, 120), st.integers(1, 60)
)
def test_a_period_ends_after_it_begins(start: datetime, months: int, days: int) -> None:
    assert Period(months, days).after(start) > start
