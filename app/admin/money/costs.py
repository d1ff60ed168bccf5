"""Admin API of costs: what the calls to vendors of the last days cost, by vendor, model, strategy or app."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Literal

from pydantic import Field

from app.admin.apps import currency_of, require_app
from app.admin.area import FOR_VIEWERS
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from app.services import Services
from storage.configs.kinds.limits import LIMITS
from storage.conversations import costs
from storage.conversations.costs import Cost
from storage.errors import UnknownApp
from streams.wire.codec import rfc3339
from streams.wire.errors import ConfigInvalid, StoreError
from streams.wire.model import Model, QueryInt

_WITHIN_S = 2.0
"""How long one request may add up attempts. The hours that remain are added up by the next requests."""
_QUICK_S = 0.2
_AT_ONCE = 64
"""The most hours of one statement. It adds up more at once as long as that is quick."""
_ROWS = 500

Dimension = Literal["vendor", "model", "strategy", "app"]
_NAMES: Mapping[Dimension, tuple[str, ...]] = {
    "vendor": ("vendor",),
    "model": ("vendor", "model"),
    "strategy": ("app_id", "strategy"),
    "app": ("app_id",),
}
"""The fields by which costs are added up."""


class CostsQuery(Model):
    app: str | None = None
    """Add up only the costs of this app."""
    days: QueryInt = Field(default=1, ge=1, le=30)
    """How many days in UTC, with today as the last one."""
    by: Dimension = "vendor"


class CostRow(Model):
    vendor: str | None = None
    model: str | None = None
    """Empty if the strategy names none, or if an earlier version has stored the attempts."""
    app: str | None = None
    strategy: str | None = None
    attempts: int
    failed: int
    price: str
    currency: str


class CostsReply(Model):
    """The costs, with their totals."""

    since: str
    rows: list[CostRow]
    """The highest price comes first. Costs in different currencies are separate rows."""
    totals: list[CostRow]
    """The sum in each currency."""
    missing_hours: int
    """Hours that have not been added up yet. The next request continues with them."""


async def read_costs(call: Call, query: Query[CostsQuery]) -> CostsReply:
    """Read what the calls to vendors cost.

    The prices are those of the configs at the time of each call. A stream belongs to the hour in which it began.
    """
    if query.app is not None:
        require_app(call, query.app)
    now = datetime.now(UTC)
    hours = costs.hours_of(query.days, now=now)
    found = await _costs_of(call.services, hours, now=now)
    wanted = [cost for of_hour in found.values() for cost in of_hour if query.app in {None, cost.app_id}]
    rows = _added_up(call, wanted, _NAMES[query.by])
    return CostsReply(
        since=rfc3339(hours[-1]),
        rows=rows[:_ROWS],
        totals=_added_up(call, wanted, ()),
        missing_hours=len(hours) - len(found),
    )


async def _costs_of(services: Services, hours: list[datetime], *, now: datetime) -> dict[datetime, list[Cost]]:
    """Return the costs by hour, without those hours for which the time does not suffice."""
    until, ended = time.monotonic() + _WITHIN_S, now - _longest_stream(services)
    found: dict[datetime, list[Cost]] = {}
    with suppress(StoreError):
        found = await costs.stored(services.valkey, hours, ended=ended)
    apps, missing, at_once = services.configs.apps(), [hour for hour in hours if hour not in found], 1
    with suppress(TimeoutError):
        async with asyncio.timeout(_WITHIN_S):
            while missing and (began := time.monotonic()) < until:
                batch, missing = missing[:at_once], missing[at_once:]
                added = await services.reads.read(partial(costs.of_hours, apps=apps, hours=batch))
                found |= added
                with suppress(StoreError):
                    await costs.store(services.valkey, added, ended=ended)
                at_once = min(_AT_ONCE, 2 * at_once) if time.monotonic() - began < _QUICK_S else 1
    return found


def _longest_stream(services: Services) -> timedelta:
    """Return how long a stream of any app may last."""
    longest_s = 0.0
    for app in services.configs.apps():
        with suppress(ConfigInvalid):
            longest_s = max(longest_s, services.configs.singleton(LIMITS, app).max_stream_s)
    return timedelta(seconds=longest_s)


def _added_up(call: Call, found: Iterable[Cost], names: tuple[str, ...]) -> list[CostRow]:
    sums: defaultdict[tuple[str, ...], list[Cost]] = defaultdict(list)
    currencies = {app: currency_of(call.services.configs, app) for app in call.services.configs.apps()}
    for cost in found:
        currency = currencies.get(cost.app_id, "")
        sums[(currency, *(getattr(cost, name) for name in names))].append(cost)
    rows = [
        CostRow(
            currency=currency,
            attempts=sum(cost.attempts for cost in members),
            failed=sum(cost.failed for cost in members),
            price=_text(sum((Decimal(cost.price) for cost in members), Decimal(0))),
            **{name.removesuffix("_id"): value for name, value in zip(names, values, strict=True)},
        )
        for (currency, *values), members in sums.items()
    ]
    return sorted(rows, key=lambda row: (Decimal(row.price), row.attempts), reverse=True)


def _text(price: Decimal) -> str:
    """Return a price without zeros at its end."""
    return f"{price.normalize():f}"


COST_ROUTES = [Endpoint("GET", "/admin/api/costs", read_costs, FOR_VIEWERS, errors=(UnknownApp,))]
