"""Liveness, readiness and metrics of this process."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    Gauge,
    Metric,
    disable_created_metrics,
    generate_latest,
)

from actors.runtime.report import measure
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import Call
from app.http.rows.replies import json_response
from app.version import version
from streams.wire.errors import ServiceError

HEALTH = Docs(
    answers={200: OtherResponse("The process is alive. `HEAD` returns only the headers.", "application/json")}
)
READINESS = Docs(
    answers={
        200: OtherResponse(
            "The server is ready. The body lists each part with its state, and the cause of each failure. `HEAD` "
            "returns only the headers.",
            "application/json",
        ),
        503: OtherResponse("The server is not ready. The body has the same form.", "application/json"),
    }
)
METRICS = Docs(answers={200: OtherResponse("The metrics in Prometheus's text format.", "text/plain")})

BUILD = Gauge("parley_build_info", "The version of this process; the value is 1", ["version"])
BUILD.labels(version()).set(1)
CONFIGS_BROKEN = Gauge("parley_configs_broken", "Active configs that cannot be used")

disable_created_metrics()  # type: ignore[no-untyped-call]  # They double the counters' lines.

_PING_S = 2
_NEEDED = frozenset({"postgres", "secrets"})
"""Parts that are required for readiness. Without the other parts, most endpoints still work."""


async def healthz(call: Call) -> web.Response:
    """Check liveness."""
    return json_response({"status": "ok", "version": version()})


async def readyz(call: Call) -> web.Response:
    """Check readiness.

    The server is ready while it is not draining, PostgreSQL accepts writes, and no config needs another master key.
    """
    causes = {name: await _cause(ping) for name, ping in call.services.readiness_checks().items()}
    supervisor = call.services.supervisor
    ready = not supervisor.draining and not any(causes[name] for name in _NEEDED)
    body = {
        "status": "draining" if supervisor.draining else "ok" if ready else "not ready",
        "parts": {
            name: "ok" if not cause else "away" if name in _NEEDED else "degraded" for name, cause in causes.items()
        },
        "causes": {name: cause for name, cause in causes.items() if cause},
        "streams": len(supervisor),
        "version": version(),
    }
    return json_response(body, status=200 if ready else 503)


async def _cause(ping: Callable[[], Awaitable[None]]) -> str:
    """Return why a part cannot be used, or an empty string if it can."""
    try:
        async with asyncio.timeout(_PING_S):
            await ping()
    except ServiceError as error:
        return error.what
    except TimeoutError:
        return f"no answer within {_PING_S} s"
    return ""


async def metrics(call: Call) -> web.Response:
    """Read the metrics of this process, for Prometheus."""
    supervisor = call.services.supervisor
    CONFIGS_BROKEN.set(len(call.services.configs.broken()))
    await measure(supervisor.live(), finished_bytes=supervisor.finished_bytes)
    pieces = []
    for metric in REGISTRY.collect():
        pieces.append(generate_latest(_OneMetric(metric)))
        await asyncio.sleep(0)  # A histogram takes a millisecond or two. Streams run between them.
    return web.Response(body=b"".join(pieces), headers={"Content-Type": CONTENT_TYPE_LATEST})


@dataclass(frozen=True, slots=True)
class _OneMetric:
    """A registry that holds one metric."""

    metric: Metric

    def collect(self) -> Iterator[Metric]:
        yield self.metric
