"""Whether this process lives, is ready, and what it counts."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from app.endpoint import Call, json_response
from streams.wire.errors import ServiceError

_PING_S = 2
_NEEDED = frozenset({"postgres"})
"""Without it nothing can be answered; without the rest much still can."""


async def healthz(call: Call) -> web.Response:
    """The event loop answers."""
    return json_response({"status": "ok"})


async def readyz(call: Call) -> web.Response:
    """200 while requests are welcome: not draining, and PostgreSQL answers."""
    parts = {name: await _state(ping) for name, ping in call.services.parts().items()}
    supervisor = call.services.supervisor
    ready = not supervisor.draining and all(parts[name] == "ok" for name in _NEEDED)
    body = {
        "status": "draining" if supervisor.draining else "ok" if ready else "not ready",
        "parts": {name: state if name in _NEEDED or state == "ok" else "degraded" for name, state in parts.items()},
        "streams": len(supervisor),
    }
    return json_response(body, status=200 if ready else 503)


async def _state(ping: Callable[[], Awaitable[None]]) -> str:
    try:
        async with asyncio.timeout(_PING_S):
            await ping()
    except (ServiceError, TimeoutError):
        return "away"
    return "ok"


async def metrics(call: Call) -> web.Response:
    """Counters for Prometheus."""
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})
