"""The end of a server process: which requests it still serves, and when it can exit."""

import asyncio

import structlog

from actors.relay import Relay
from actors.supervisor import Supervisor
from app.http.server import Runner
from app.process.control import ShutdownRequests
from streams.tasks import background

log = structlog.get_logger()

_LAST_REQUESTS_S = 1
_KEPT_IDLE_S = 20
"""Longer than `deploy/nginx.conf` keeps an idle connection open."""
_POLL_S = 0.05


async def serve_until_drained(
    runner: Runner, supervisor: Supervisor, relay: Relay, requests: ShutdownRequests, *, timeout_s: float
) -> None:
    """Serve until the process must stop or retire, and then until all streams have ended, at most `timeout_s`.

    A process that retires continues to serve its existing connections, including new streams. A process that stops
    refuses new streams. Responses of both have the header `Connection: close`.
    """
    await requests.any.wait()
    runner.closing = True
    if not requests.stop.is_set():
        log.info("server.retiring", streams=len(supervisor), timeout_s=timeout_s)
        if not await _unused_or_stopped(runner, supervisor, requests, within_s=timeout_s):
            timeout_s = 0
    supervisor.draining = True
    log.info("server.draining", streams=len(supervisor), timeout_s=timeout_s)
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout_s
    await supervisor.drain(timeout_s)
    await relay.drain(max(0, deadline - clock()))


async def answer_last_requests(runner: Runner) -> None:
    """Answer requests on connections that were accepted last, for at most a second."""
    try:
        async with asyncio.timeout(_LAST_REQUESTS_S):
            while runner.connections:  # noqa: ASYNC110 - polling is cheap here, and happens once per process
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        pass


async def _unused_or_stopped(
    runner: Runner, supervisor: Supervisor, requests: ShutdownRequests, *, within_s: float
) -> bool:
    async with background(_unused(runner, supervisor)) as unused, background(requests.stop.wait()) as stopped:
        done, _ = await asyncio.wait([unused, stopped], timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)


async def _unused(runner: Runner, supervisor: Supervisor) -> None:
    """Wait until no stream is running and all connections are closed or have been idle for 20 s.

    Proxies and clients reuse idle connections for less time than that. If a connection were closed earlier, a
    request might already be on its way.
    """
    clock = asyncio.get_running_loop().time
    last_used = clock()
    while len(supervisor) or (runner.connections and clock() - last_used < _KEPT_IDLE_S):
        if len(supervisor) or runner.busy:
            last_used = clock()
        await asyncio.sleep(_POLL_S)
