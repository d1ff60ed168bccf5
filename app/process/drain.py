"""How a server process ends: what it still serves, and when nobody needs it any more."""

import asyncio

import structlog

from actors.supervisor import Supervisor
from app.http.server import Runner
from app.process.control import Orders
from streams.tasks import background

log = structlog.get_logger()

_LAST_REQUESTS_S = 1
_KEPT_IDLE_S = 20
"""Longer than `deploy/nginx.conf` keeps an idle connection."""
_LOOK_AGAIN_S = 0.05


async def serve_until_drained(runner: Runner, supervisor: Supervisor, orders: Orders, *, timeout_s: float) -> None:
    """Serve until an order comes, and then until no stream runs; streams may go on for `timeout_s`.

    A process that retires goes on serving the connections it has, and starts streams for them. A process that stops
    starts none. Both tell their clients that the connection closes.
    """
    await orders.any.wait()
    runner.closing = True
    if not orders.stop.is_set():
        log.info("server.retiring", streams=len(supervisor), timeout_s=timeout_s)
        if not await _unused_or_stopped(runner, supervisor, orders, within_s=timeout_s):
            timeout_s = 0
    supervisor.draining = True
    log.info("server.draining", streams=len(supervisor), timeout_s=timeout_s)
    await supervisor.drain(timeout_s)


async def answer_the_last(runner: Runner) -> None:
    """Once no connection is accepted: answer requests on those that were, within a short time."""
    try:
        async with asyncio.timeout(_LAST_REQUESTS_S):
            while runner.connections:  # noqa: ASYNC110 - cheap, and once in the life of a process
                await asyncio.sleep(_LOOK_AGAIN_S)
    except TimeoutError:
        pass


async def _unused_or_stopped(runner: Runner, supervisor: Supervisor, orders: Orders, *, within_s: float) -> bool:
    async with background(_unused(runner, supervisor)) as unused, background(orders.stop.wait()) as stopped:
        done, _ = await asyncio.wait([unused, stopped], timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)


async def _unused(runner: Runner, supervisor: Supervisor) -> None:
    """Wait until no stream runs and no connection is left, or those left have been idle for long.

    A connection is only closed after it was idle for longer than proxies and clients reuse one: the close could
    otherwise cross a request on its way.
    """
    clock = asyncio.get_running_loop().time
    last_used = clock()
    while len(supervisor) or (runner.connections and clock() - last_used < _KEPT_IDLE_S):
        if len(supervisor) or runner.busy:
            last_used = clock()
        await asyncio.sleep(_LOOK_AGAIN_S)
