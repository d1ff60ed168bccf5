"""The HTTP server of the local engines, with OpenAI's API, that of a model host and that of an image host."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import structlog
from aiohttp import web

from streams.wire.codec import dumps
from vendors.local.endpoints.assessing import assess
from vendors.local.endpoints.completions import complete
from vendors.local.endpoints.drawing import drawing_routes
from vendors.local.endpoints.predictions import Predictions
from vendors.local.endpoints.synthesis import speak
from vendors.local.endpoints.transcription import transcribe
from vendors.local.engines.engines import Engines
from vendors.local.engines.faults import Fault, server_error

log = structlog.get_logger()

_BACKLOG = 4_096
_SHUTDOWN_S = 1.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def listening(engines: Engines, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve during the block and return the base URL. A request is cancelled when its client disconnects."""
    runner = web.AppRunner(_app(engines), handler_cancellation=True, shutdown_timeout=_SHUTDOWN_S, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=_BACKLOG).start()
        bound = runner.addresses[0][1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{bound}/v1"
    finally:
        await runner.cleanup()


def _app(engines: Engines) -> web.Application:
    app = web.Application(middlewares=[_handle_faults], client_max_size=8 * 1024 * 1024)
    predictions = Predictions(engines)
    app.on_shutdown.append(predictions.close)
    app.add_routes(
        [
            *predictions.routes(),
            web.get("/health", partial(_health, engines)),
            web.get("/v1/models", partial(_models, engines)),
            web.post("/v1/chat/completions", partial(complete, engines)),
            web.post("/v1/audio/speech", partial(speak, engines)),
            web.post("/v1/audio/transcriptions", partial(transcribe, engines)),
            web.post("/v1/audio/assessments", partial(assess, engines)),
            *drawing_routes(engines.missing.get("patterns")),
        ]
    )
    return app


async def _health(engines: Engines, request: web.Request) -> web.Response:
    return _json({"status": "ok", "engines": engines.faults()})


async def _models(engines: Engines, request: web.Request) -> web.Response:
    names = [name for name, fault in engines.faults().items() if fault is None]
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "parley"} for name in names]
    return _json({"object": "list", "data": data})


@web.middleware
async def _handle_faults(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Fault as fault:
        return _error_response(fault)
    except web.HTTPException as error:
        return _error_response(Fault(error.status, f"{error.reason}: {request.method} {request.path}"))
    except ConnectionError:
        raise  # The client has disconnected.
    except Exception:
        log.exception("request.failed", path=request.path)
        return _error_response(server_error())


def _error_response(fault: Fault) -> web.Response:
    response = _json(fault.body(), status=fault.status)
    if fault.retry_after_s is not None:
        response.headers["Retry-After"] = str(fault.retry_after_s)
    return response


def _json(value: object, *, status: int = 200) -> web.Response:
    return web.Response(body=dumps(value), status=status, content_type="application/json")
