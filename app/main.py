"""The server process: opens services and sockets, serves the routes, and drains at the end."""

import asyncio
import gc
import os
import resource
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

import structlog
from aiohttp import web

from app.error_pages import error_page
from app.http.paths import routes_of
from app.http.request.checks import handler_of
from app.http.request.held_bodies import HELD_BODIES, HeldBodies
from app.http.request.large_responses import UNSENT_BYTES, UnsentBytes
from app.http.request.pipeline import on_prepare
from app.http.rows.endpoint import Endpoint
from app.http.rows.row_errors import ERROR_PAGE
from app.http.serving.connections import Bounds
from app.http.serving.server import DIRECT, Runner, runner_of
from app.http.wire.direct import DirectAnswers
from app.observing import logs
from app.process.control import Inherited, ShutdownRequests, parent_channel
from app.process.drain import answer_last_requests, serve_until_drained
from app.process.figures import publishing_figures
from app.process.listeners import Listeners
from app.process.memory import limit_free_memory, trim_free_memory
from app.process.sockets import METRICS, PUBLIC, listening_sockets
from app.routes import METRICS_PORT_ROUTES, public_routes
from app.services import SERVICES, Services, open_services
from app.settings import Settings
from app.version import version
from streams.tasks import background
from streams.wire.ids import new_id

log = structlog.get_logger()

_LAST_WRITES_S = 5
_PARENT_ANSWERS_S = 3
COLLECTOR_THRESHOLDS = (5_000, 200, 50)


def application(services: Services, rows: Sequence[Endpoint] | None = None) -> web.Application:
    """Return the application for `rows` of the route table, by default those of the public port.

    Every path is served with and without a trailing slash.
    """
    app = web.Application()
    app[SERVICES] = services
    app[UNSENT_BYTES] = UnsentBytes()
    app[HELD_BODIES] = HeldBodies()
    if rows is None:  # The metrics port has no pages to which an error page could lead.
        rows, app[ERROR_PAGE] = public_routes(services.settings), error_page
    app[DIRECT] = DirectAnswers({row.path: row.direct for row in rows if row.direct is not None}, services)
    routes = routes_of({path for row in rows for path in row.paths})
    for row in rows:
        for path in row.paths:
            handle, route = handler_of(row, path), routes[path]
            app.router.add_route(row.method, route, handle)
            if not path.endswith(":.+}"):
                other = route.removesuffix("/") if route.endswith("/") else f"{route}/"
                app.router.add_route(row.method, other, handle)
    app.on_response_prepare.append(on_prepare)
    return app


async def serve(settings: Settings, inherited: Inherited | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then drain. A second signal ends the process immediately.

    `inherited` holds the sockets from the parent of several processes. A single process opens its own sockets.
    """
    process = new_id()
    logs.configure(level=settings.log_level, process=process)
    _raise_descriptor_limit()
    limit_free_memory()
    sockets = _own_sockets(settings) if inherited is None else inherited.sockets()
    async with (
        open_services(settings, process=process) as services,
        background(trim_free_memory()),
        publishing_figures(services),
    ):
        bounds = Bounds.of(settings)
        runner = runner_of(application(services), shutdown_timeout_s=_LAST_WRITES_S, bounds=bounds)
        await runner.setup()
        operations = runner_of(application(services, METRICS_PORT_ROUTES), shutdown_timeout_s=_LAST_WRITES_S)
        await operations.setup()
        try:
            async with Listeners(sockets, runner, runners={METRICS: operations}) as listeners:
                await listeners.accept_from(sockets if inherited is None else inherited.own_listeners)
                _settle_collector()
                log.info(
                    "server.listening",
                    version=version(),
                    pid=os.getpid(),
                    host=settings.host,
                    port=settings.port,
                    connections=bounds.connections,
                )
                await _serve_until_drained(services, runner, listeners, inherited)
            await answer_last_requests(runner)
            await services.supervisor.replicate_finished()
        finally:
            await runner.cleanup()
            await operations.cleanup()
    log.info("server.stopped")


def _own_sockets(settings: Settings) -> dict[str, list[socket.socket]]:
    sockets = {PUBLIC: listening_sockets(settings.host, settings.port, variable="PORT")}
    if settings.metrics_port is not None:
        sockets[METRICS] = listening_sockets(
            settings.metrics_host, settings.metrics_port, variable="PARLEY_METRICS_PORT"
        )
    return sockets


async def _serve_until_drained(
    services: Services, runner: Runner, listeners: Listeners, inherited: Inherited | None
) -> None:
    """Serve until a signal or the parent requests the end, and all streams have ended."""
    requests, settings = ShutdownRequests(), services.settings
    drained = partial(
        serve_until_drained,
        runner,
        services.supervisor,
        services.relay,
        requests,
        timeout_s=settings.drain_timeout_s,
        notice_s=settings.drain_notice_s,
    )
    async with AsyncExitStack() as stack:
        requests.handle_signals(has_parent=inherited is not None)
        if inherited is None:
            await drained()
            return
        parent = await stack.enter_async_context(parent_channel(inherited))
        following = await stack.enter_async_context(background(parent.follow(listeners, requests)))
        parent.send("ready")
        await drained()
        parent.send("drained")
        # A parent that has died does not respond: then `follow` accepts the connections that wait.
        await asyncio.wait([following], timeout=_PARENT_ANSWERS_S)


def _settle_collector() -> None:
    """Exclude objects created at start-up from garbage collection, and limit the pause of each collection.

    A collection of the youngest generation takes up to 1 µs per object: 5 ms for 5,000, 50 ms for 50,000. The older
    generations also hold streams that have ended but can still be read, so they are collected rarely.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.enable()


def _raise_descriptor_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
