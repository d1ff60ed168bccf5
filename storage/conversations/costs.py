"""What the calls to vendors cost, added up by the hour. Hours that are over are kept in Valkey.

So a report of 30 days reads the attempts of each hour once, for all operators, and afterwards only those of the
last hours.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from storage.postgres.database import Connection
from storage.valkey.client import Valkey, map_errors
from streams.wire.codec import dumps, loads

HOUR = timedelta(hours=1)
_KEPT_S = 40 * 24 * 3600
_RECENT_S = 60
_SETTLED = timedelta(hours=2)
"""How long attempts may be stored after the end of a stream, because the database was unavailable."""
_GROUPS = 2_000
"""The most rows of one hour. The cheapest ones above that are left out."""


class Cost(NamedTuple):
    """The calls of one strategy to one model, as a row or as JSON."""

    app_id: str
    stage: str
    strategy: str
    vendor: str
    model: str
    attempts: int
    failed: int
    price: str
    """In the app's currency."""


# The primary key has this order, so one range of it is read for each app and hour.
_OF_HOURS = """
select hours.number, of_hour.* from unnest($2::text[], $3::text[]) with ordinality hours (first, last, number)
cross join lateral (
    select app_id, stage, strategy, vendor, coalesce(model, '') as model, count(*) as attempts,
        count(*) filter (where outcome = 'failed') as failed, sum(price)::text as price
    from attempts where app_id = any($1) and stream_id >= hours.first and stream_id < hours.last
    group by 1, 2, 3, 4, 5 order by sum(price) desc, count(*) desc limit $4
) of_hour
"""


async def of_hours(
    conn: Connection, *, apps: Sequence[str], hours: Sequence[datetime]
) -> dict[datetime, list[Cost]]:
    """Return the costs of the streams that began in each of some hours, by the clock of the machine."""
    first, last = [_first_id(hour) for hour in hours], [_first_id(hour + HOUR) for hour in hours]
    found: dict[datetime, list[Cost]] = {hour: [] for hour in hours}
    for number, *values in await conn.fetch(_OF_HOURS, list(apps), first, last, _GROUPS):
        found[hours[number - 1]].append(Cost(*values))
    return found


def _first_id(at: datetime) -> str:
    return f"{round(at.timestamp() * 1000):012x}"


async def stored(valkey: Valkey, hours: Iterable[datetime], *, ended: datetime) -> dict[datetime, list[Cost]]:
    """Return the costs of those hours that are stored. Raises `StoreError` if Valkey is unavailable.

    `ended`: all streams that began before have ended.
    """
    by_day: dict[str, list[datetime]] = {}
    found: dict[datetime, list[Cost]] = {}
    with map_errors():
        for hour in hours:
            if _is_settled(hour, ended=ended):
                by_day.setdefault(_day(hour), []).append(hour)
            elif (value := await valkey.call("GET", _recent_key(valkey, hour))) is not None:
                found[hour] = [Cost(*row) for row in loads(value)]
        for day, wanted in by_day.items():
            values = await valkey.call("HMGET", _key(valkey, day), *(str(hour.hour) for hour in wanted))
            for hour, value in zip(wanted, values, strict=True):
                if value is not None:
                    found[hour] = [Cost(*row) for row in loads(value)]
    return found


async def store(valkey: Valkey, costs: Mapping[datetime, Sequence[Cost]], *, ended: datetime) -> None:
    """Store the costs of hours: for a minute, if further attempts of one may follow. Raises `StoreError`."""
    by_day: dict[str, list[str | bytes]] = {}
    with map_errors():
        for hour, of_hour in costs.items():
            value = dumps([list(cost) for cost in of_hour])
            if _is_settled(hour, ended=ended):
                by_day.setdefault(_day(hour), []).extend((str(hour.hour), value))
            else:
                await valkey.call("SET", _recent_key(valkey, hour), value, "EX", _RECENT_S)
        for day, fields in by_day.items():
            await valkey.call("HSET", _key(valkey, day), *fields)
            await valkey.call("EXPIRE", _key(valkey, day), _KEPT_S)


def hours_of(days: int, *, now: datetime) -> list[datetime]:
    """Return the hours of today and the days before it in UTC, the newest first."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight - timedelta(days=days - 1)
    count = int((now - first) / HOUR)
    return [first + HOUR * number for number in range(count, -1, -1)]


def _is_settled(hour: datetime, *, ended: datetime) -> bool:
    """Return whether all attempts of an hour are stored."""
    return ended - hour >= HOUR + _SETTLED


def _recent_key(valkey: Valkey, hour: datetime) -> str:
    return valkey.key("figures", "costs", f"{hour:%Y-%m-%dT%H}")


def _day(hour: datetime) -> str:
    return f"{hour:%Y-%m-%d}"


def _key(valkey: Valkey, day: str) -> str:
    return valkey.key("figures", "costs", day)
