"""Admin API of the overview: the load of all processes, failures, payments, and the last changes."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from aiohttp import web

from app.admin.apps import currency_of
from app.admin.area import FOR_VIEWERS
from app.admin.attention import AttentionRow, attention_of
from app.admin.audit import AuditRow, audit_row
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import Call, Endpoint
from app.observing.stored_figures import Figures
from app.services import Services
from storage.operators import figures
from streams.wire.codec import dumps, rfc3339
from streams.wire.errors import StoreError
from streams.wire.model import Model
from vendors.calls.metrics import BUCKETS_S

EVERY_S = 2.0
WATCHED_S = 60.0
"""How long one response lasts. Then the console makes a new request, which checks the session again."""


class ProcessRow(Model):
    process: str
    host: str
    version: str
    began_at: str
    age_s: float
    """Age of these figures."""
    draining: bool
    streams: int
    connections: int


class VendorRow(Model):
    stage: str
    """`stt`, `llm`, `tts` or `assess`."""
    vendor: str
    attempts: int
    failed: int
    p50_ms: int | None = None
    """Median time to the first output, at most this; absent if there was none."""
    p95_ms: int | None = None


class NamedCount(Model):
    name: str
    count: int


class MoneyRow(Model):
    currency: str
    payments: int
    amount: int
    """In minor units."""


class SpentRow(Model):
    currency: str
    amount: str
    """As a decimal number."""


class Overview(Model):
    """The state of all processes, with what needs attention."""

    at: str
    attention: list[AttentionRow]
    """What needs the attention of an operator, the worst first."""
    processes: list[ProcessRow]
    """The processes whose figures are added up here. Each publishes its figures every five seconds."""
    live: list[NamedCount]
    """Running streams by kind."""
    readers: int
    ended_per_minute: list[NamedCount]
    """Streams that have ended in the last minute, by kind."""
    requests_per_minute: float
    vendors: list[VendorRow]
    """In the last five minutes."""
    errors: list[NamedCount]
    """Error responses of the last five minutes by type, the most frequent first."""
    breakers: list[str]
    """Vendor accounts whose circuit breaker is open in a process."""
    jobs_waiting: int
    jobs_held: int
    oldest_job_s: float
    money: list[MoneyRow]
    """What was paid for orders since midnight in UTC."""
    cost: list[SpentRow]
    """What calls to vendors cost since midnight in UTC, as the configs price them."""
    changes: list[AuditRow]
    """The last changes by operators and commands."""


async def read_overview(call: Call) -> Overview:
    """Read the overview of all processes."""
    return await _overview(call.services)


async def watch_overview(call: Call) -> Coroutine[Any, Any, web.StreamResponse]:
    """Watch the overview.

    Each event has the form of `GET /admin/api/overview`. The response ends after a minute; request it again then.
    """
    return _watched(call)


async def _watched(call: Call) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(call.request)
    ends_at = time.monotonic() + WATCHED_S
    try:
        while time.monotonic() < ends_at and not call.services.supervisor.draining:
            shown = (await _overview(call.services)).model_dump(mode="json", exclude_none=True)
            await response.write(b"data: %b\n\n" % dumps(shown))
            await asyncio.sleep(EVERY_S)
        await response.write_eof()
    except ConnectionError:
        pass  # The page is closed.
    return response


async def _overview(services: Services) -> Overview:
    """Return the overview. Without a store, it lacks what that store holds, and says so."""
    found: Mapping[str, Mapping[str, Any]] = {}
    stored = Figures()
    with suppress(StoreError):
        found = await figures.of_all(services.valkey)
    with suppress(StoreError):
        stored = await services.stored_figures.read()
    processes = list(found.values())
    return Overview(
        at=rfc3339(datetime.now(UTC)),
        attention=attention_of(services, stored, processes),
        processes=[
            _process(name, process) for name, process in sorted(found.items(), key=lambda item: item[1]["began_at"])
        ],
        live=_counted(_summed(process["live"] for process in processes)),
        readers=sum(process["readers"] for process in processes),
        ended_per_minute=_counted(_ended_per_minute(processes)),
        requests_per_minute=round(
            sum(process["requests"] * 60 / max(1, process["rate_s"]) for process in processes), 1
        ),
        vendors=_vendors(processes),
        errors=_counted(_summed(process["errors"] for process in processes)),
        breakers=sorted({account for process in processes for account in process["breakers"]}),
        cost=_cost(services, stored),
        **_of_stored(stored),
    )


def _cost(services: Services, stored: Figures) -> list[SpentRow]:
    """Return the cost by currency, the highest first."""
    by_currency: defaultdict[str, Decimal] = defaultdict(Decimal)
    for app_id, spent in stored.spent.items():
        if currency := currency_of(services.configs, app_id):
            by_currency[currency] += spent
    highest = sorted(by_currency.items(), key=lambda item: -item[1])
    return [SpentRow(currency=currency, amount=f"{amount:f}") for currency, amount in highest]


def _of_stored(stored: Figures) -> dict[str, Any]:
    waiting = [job for job in stored.jobs if job.status == "todo"]
    return {
        "jobs_waiting": sum(job.count for job in waiting),
        "jobs_held": sum(job.count for job in stored.jobs if job.status == "failed"),
        "oldest_job_s": round(max((job.oldest_s for job in waiting), default=0.0), 1),
        "money": [MoneyRow(currency=row.currency, payments=row.payments, amount=row.amount) for row in stored.sold],
        "changes": [audit_row(change) for change in stored.changes],
    }


def _process(name: str, published: Mapping[str, Any]) -> ProcessRow:
    return ProcessRow(
        process=name,
        host=published["host"],
        version=published["version"],
        began_at=rfc3339(datetime.fromtimestamp(published["began_at"], UTC)),
        age_s=round(max(0.0, time.time() - published["at"]), 1),
        draining=published["draining"],
        streams=sum(published["live"].values()),
        connections=published["connections"],
    )


def _vendors(processes: Sequence[Mapping[str, Any]]) -> list[VendorRow]:
    outcomes: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    buckets: dict[tuple[str, str], list[int]] = {}
    for process in processes:
        for labels, count in process["attempts"].items():
            stage, vendor, outcome = labels.split("\t")
            outcomes[stage, vendor][outcome] += count
        for labels, row in process["first_output"].items():
            stage, vendor = labels.split("\t")
            before = buckets.get((stage, vendor), [0] * len(row))
            buckets[stage, vendor] = [one + other for one, other in zip(before, row, strict=True)]
    rows = []
    for stage, vendor in sorted({*outcomes, *buckets}):
        ended, row = outcomes[stage, vendor], buckets.get((stage, vendor), [])
        rows.append(
            VendorRow(
                stage=stage,
                vendor=vendor,
                attempts=ended.total(),
                failed=ended["failed"],
                p50_ms=quantile_ms(row, 0.5),
                p95_ms=quantile_ms(row, 0.95),
            )
        )
    return rows


def quantile_ms(buckets: Sequence[int], share: float) -> int | None:
    """Return the value below which a share of observations lies, between the bounds of its bucket."""
    total, seen, bounds = sum(buckets), 0, [0.0, *BUCKETS_S, BUCKETS_S[-1]]
    if not total:
        return None
    for number, count in enumerate(buckets):
        if count and seen + count >= total * share:
            low, high = bounds[number], bounds[number + 1]
            return round((low + (high - low) * (total * share - seen) / count) * 1000)
        seen += count
    return None


def _summed(processes: Iterable[Mapping[str, int]]) -> Counter[str]:
    summed: Counter[str] = Counter()
    for counts in processes:
        summed.update(counts)
    return summed


def _ended_per_minute(processes: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Return the number of streams that end per minute by kind, which is the first of their labels."""
    ended: Counter[str] = Counter()
    for process in processes:
        for labels, count in process["ended"].items():
            ended[labels.partition("\t")[0]] += round(count * 60 / max(1, process["rate_s"]))
    return ended


def _counted(counts: Counter[str]) -> list[NamedCount]:
    return [NamedCount(name=name, count=count) for name, count in counts.most_common(20)]


_EVENTS = Docs(answers={200: OtherResponse("Events whose data are overviews.", "text/event-stream")})

OVERVIEW_ROUTES = [
    Endpoint("GET", "/admin/api/overview", read_overview, FOR_VIEWERS),
    Endpoint("GET", "/admin/api/overview/events", watch_overview, FOR_VIEWERS, docs=_EVENTS),
]
