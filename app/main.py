"""The server process: routes on a socket, signals, drain, stop."""

import asyncio
import gc
import os
import resource
import signal

import structlog
from aiohttp import web

from app import logs
from app.answering import on_prepare
from app.endpoint import handler_of
from app.memory import limit_free_memory, trim_free_memory
from app.routes import ROUTES
from app.runner import runner_of
from app.services import SERVICES, Services, open_services
from app.settings import Settings
from streams.tasks import background

log = structlog.get_logger()

_BACKLOG = 4096
_STOP_LISTENING_AFTER_S = 1
_LAST_WRITES_S = 5


def application(services: Services) -> web.Application:
    """All rows of the route table; a path answers with and without a slash at its end."""
    app = web.Application()
    app[SERVICES] = services
    for row in ROUTES:
        for path in filter(None, (row.path, row.s2s)):
            handle = handler_of(row, path)
            app.router.add_route(row.method, path, handle)
            if not path.endswith(":.+}"):
                other = path.removesuffix("/") if path.endswith("/") else f"{path}/"
                app.router.add_route(row.method, other, handle)
    app.on_response_prepare.append(on_prepare)
    return app


async def serve(settings: Settings, *, reuse_port: bool = False) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends at once."""
    logs.configure(level=settings.log_level)
    _raise_descriptor_limit()
    limit_free_memory()
    async with open_services(settings) as services, background(trim_free_memory()):
        runner = runner_of(application(services), shutdown_timeout_s=_LAST_WRITES_S)
        await runner.setup()
        site = web.TCPSite(runner, settings.host, settings.port, backlog=_BACKLOG, reuse_port=reuse_port or None)
        try:
            await site.start()
            if settings.metrics_port is not None:
                await web.TCPSite(runner, "127.0.0.1", settings.metrics_port).start()
            _settle_collector()
            log.info("server.listening", host=settings.host, port=settings.port)
            await _signalled()
            await _drain(services, site, stop_listening=reuse_port)
        finally:
            await runner.cleanup()
    log.info("server.stopped")


async def _signalled() -> None:
    stop = asyncio.Event()

    def told(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told, number)
    await stop.wait()


async def _drain(services: Services, site: web.TCPSite, *, stop_listening: bool) -> None:
    """Let streams end. A lone process keeps listening meanwhile; one of several leaves that to its siblings."""
    supervisor, timeout_s = services.supervisor, services.settings.drain_timeout_s
    supervisor.draining = True
    log.info("server.draining", streams=len(supervisor), timeout_s=timeout_s)
    if stop_listening:
        await asyncio.sleep(_STOP_LISTENING_AFTER_S)
        await site.stop()
    await supervisor.drain(timeout_s)
    await supervisor.leave()


def _settle_collector() -> None:
    """What start-up made lives as long as the process: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _raise_descriptor_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
