"""The periods of a board: when they begin, in the time zone of its config."""

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from storage.configs.kinds.leaderboards import Reset

_DAY = timedelta(days=1)
_UNITS = range(-2, 4)
"""The periods to consider, relative to the one that contains a date."""


def starts_near(reset: Reset, moment: datetime) -> tuple[datetime, ...]:
    """Return when the periods around a moment begin, in UTC: at least one period before its own, and one after."""
    return _starts_near(reset, moment.astimezone(UTC).date())


def start_of(starts: tuple[datetime, ...], moment: datetime) -> datetime:
    """Return the beginning of the period that contains `moment`."""
    return max((start for start in starts if start <= moment), default=starts[0])


@lru_cache(maxsize=1024)
def _starts_near(reset: Reset, day: date) -> tuple[datetime, ...]:
    zone, at = ZoneInfo(reset.time_zone), time.fromisoformat(reset.at)
    return tuple(sorted({instant_of(datetime.combine(start, at), zone) for start in _dates(reset, day)}))


def _dates(reset: Reset, day: date) -> Iterator[date]:
    for unit in _UNITS:
        if reset.every == "day":
            yield day + unit * _DAY
        elif reset.every == "week":
            yield day + (unit * 7 + reset.weekday - day.isoweekday()) * _DAY
        else:
            year, month = divmod(day.year * 12 + day.month - 1 + unit, 12)
            last = calendar.monthrange(year, month + 1)[1]
            yield date(year, month + 1, min(reset.day, last))


def instant_of(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant of a local time, in UTC.

    An ambiguous time means the first of its two instants. A time that the clocks skip means the first instant after
    the gap. Bisection finds it between the instants that the offsets before and after the gap yield.
    """
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first.astimezone(zone).replace(tzinfo=None) == local:
        return first
    before, after = second, first
    offset = first.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // 2
        middle -= timedelta(microseconds=middle.microsecond)
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after
