"""Whether this process lives, is ready, and what it counts."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Metric, disable_created_metrics, generate_latest

from actors.report import measure
from app.http.docs import Docs, OtherResponse
from app.http.endpoint import Call, json_response
from streams.wire.errors import ServiceError

HEALTH = Docs(answers={200: OtherResponse("It does.", "application/json")})
READINESS = Docs(
    answers={
        200: OtherResponse(
            "They are. The body names each part, its state, and the cause where it cannot be used.",
            "application/json",
        ),
        503: OtherResponse("They are not. The body is of the same form.", "application/json"),
    }
)
METRICS = Docs(answers={200: OtherResponse("Counters in Prometheus's text format.", "text/plain")})

disable_created_metrics()  # type: ignore[no-untyped-call]  # a line more for each, that nobody asks for

_PING_S = 2
_NEEDED = frozenset({"postgres"})
"""Without it nothing can be answered; without the rest much still can."""


async def healthz(call: Call) -> web.Response:
    """Ask whether the process lives."""
    return json_response({"status": "ok"})


async def readyz(call: Call) -> web.Response:
    """Ask whether requests are welcome.

    They are while the server is not draining, and PostgreSQL answers and can be written to.
    """
    causes = {name: await _cause(ping) for name, ping in call.services.parts().items()}
    supervisor = call.services.supervisor
    ready = not supervisor.draining and not any(causes[name] for name in _NEEDED)
    body = {
        "status": "draining" if supervisor.draining else "ok" if ready else "not ready",
        "parts": {
            name: "ok" if not cause else "away" if name in _NEEDED else "degraded" for name, cause in causes.items()
        },
        "causes": {name: cause for name, cause in causes.items() if cause},
        "streams": len(supervisor),
    }
    return json_response(body, status=200 if ready else 503)


async def _cause(ping: Callable[[], Awaitable[None]]) -> str:
    """Why a part cannot be used; empty where it can."""
    try:
        async with asyncio.timeout(_PING_S):
            await ping()
    except ServiceError as error:
        return error.what
    except TimeoutError:
        return f"no answer within {_PING_S} s"
    return ""


async def metrics(call: Call) -> web.Response:
    """Read the counters of this process, for Prometheus."""
    supervisor = call.services.supervisor
    await measure(supervisor.live(), finished_bytes=supervisor.finished_bytes)
    pieces = []
    for metric in REGISTRY.collect():
        pieces.append(generate_latest(_Alone(metric)))
        await asyncio.sleep(0)  # histograms take a millisecond or two: streams go on between them
    return web.Response(body=b"".join(pieces), headers={"Content-Type": CONTENT_TYPE_LATEST})


@dataclass(frozen=True, slots=True)
class _Alone:
    """One metric as a whole registry."""

    metric: Metric

    def collect(self) -> Iterator[Metric]:
        yield self.metric
