"""Instants that are hard for rules of the calendar. Tests of a rule have a table of its results, set by hand."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TypeVar

from streams.wire.codec import from_rfc3339

HARD_INSTANTS = (
    "2027-01-28T12:00:00Z",
    "2027-01-29T12:00:00Z",
    "2027-01-30T12:00:00Z",
    "2027-01-31T12:00:00Z",
    "2027-02-28T12:00:00Z",
    "2027-03-14T07:00:00Z",  # Daylight-saving time begins in New York: 02:00 is 03:00.
    "2027-03-28T01:00:00Z",  # It begins in Berlin: 02:00 is 03:00.
    "2027-03-31T12:00:00Z",
    "2027-10-31T01:00:00Z",  # It ends in Berlin: 03:00 is 02:00.
    "2027-11-07T06:00:00Z",  # It ends in New York: 02:00 is 01:00.
    "2027-12-31T23:59:59Z",
    "2028-01-01T00:00:00Z",
    "2028-02-29T12:00:00Z",
)
Result = TypeVar("Result")


def walk(expected: Mapping[str, Result]) -> Iterator[tuple[datetime, Result]]:
    """Yield each instant, the earliest first, with what a test expects at it."""
    assert expected.keys() == set(HARD_INSTANTS)
    for instant in HARD_INSTANTS:
        yield from_rfc3339(instant), expected[instant]
