"""Calendar periods such as a month, in the notation of ISO 8601."""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import AfterValidator, Field

_FORM = re.compile(r"P(?=\d)(?:(\d{1,2})Y)?(?:(\d{1,3})M)?(?:(\d{1,3})W)?(?:(\d{1,4})D)?", re.ASCII)
_MAX_YEARS = 10


@dataclass(frozen=True, slots=True)
class Period:
    """A number of months and days."""

    months: int
    days: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a period such as `P1M`, `P1Y` or `P2W`. Raises `ValueError` for other texts."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError("must be an ISO 8601 period of years, months, weeks and days, such as P1M")
        years, months, weeks, days = (int(number or 0) for number in match.groups())
        period = cls(12 * years + months, 7 * weeks + days)
        if not 0 < 31 * period.months + period.days <= 366 * _MAX_YEARS:
            raise ValueError(f"must be longer than nothing and at most {_MAX_YEARS} years")
        return period

    def after(self, start: datetime) -> datetime:
        """Return the end of the period that begins at `start`. A month without that day ends at its last day."""
        year, month = divmod(start.year * 12 + start.month - 1 + self.months, 12)
        day = min(start.day, monthrange(year, month + 1)[1])
        return start.replace(year=year, month=month + 1, day=day) + timedelta(days=self.days)


def _validate(text: str) -> str:
    Period.parse(text)
    return text


PeriodText = Annotated[str, Field(max_length=16), AfterValidator(_validate)]
"""The text of a `Period` in a config."""
