"""The end of a server process: which requests it still serves, and when it can exit."""

import asyncio

import structlog

from actors.runtime.relay import Relay
from actors.runtime.supervisor import Supervisor
from app.http.serving.server import Runner
from app.process.control import ShutdownRequests, max_retiring_s
from streams.tasks import background, pause, stopping

log = structlog.get_logger()

_LAST_REQUESTS_S = 1
_POLL_S = 0.05
_CLOSE_IDLE_EVERY_S = 0.25


async def serve_until_drained(
    runner: Runner,
    supervisor: Supervisor,
    relay: Relay,
    requests: ShutdownRequests,
    *,
    timeout_s: float,
    notice_s: float,
) -> None:
    """Serve until the process must stop or retire, and then until all streams have ended.

    A process that retires first continues to serve its existing connections, including new streams, for at most
    `max_retiring_s()`. Then it closes the idle ones, but serves requests that have begun to arrive. A process that
    stops refuses new streams immediately, and serves other requests for at least `notice_s`, in which a proxy
    notices by `/readyz` that it must use another process. Both wait up to `timeout_s` for their streams. All
    responses have the header `Connection: close`.
    """
    await requests.any.wait()
    runner.closing = True
    if not requests.stop.is_set():
        log.info("server.retiring", streams=len(supervisor), timeout_s=timeout_s)
        await _unused_or_stopped(runner, supervisor, requests, within_s=max_retiring_s(timeout_s))
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout_s
    notice_until = clock() + notice_s if requests.stop.is_set() else 0
    log.info("server.draining", streams=len(supervisor), timeout_s=timeout_s)
    if not requests.stop.is_set():
        async with background(_keep_closing_idle(runner)):
            await _unused_or_stopped(runner, supervisor, requests, within_s=timeout_s)
    await supervisor.drain(max(0, deadline - clock()))
    await relay.drain(max(0, deadline - clock()))
    await asyncio.sleep(max(0, min(notice_until, deadline) - clock()))


async def answer_last_requests(runner: Runner) -> None:
    """Answer requests on the most recently accepted connections, for at most a second."""
    try:
        async with asyncio.timeout(_LAST_REQUESTS_S):
            while runner.connections:  # noqa: ASYNC110 - polling is cheap here, and happens once per process
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        pass


async def _unused_or_stopped(
    runner: Runner, supervisor: Supervisor, requests: ShutdownRequests, *, within_s: float
) -> None:
    async with background(_unused(runner, supervisor)) as unused, background(requests.stop.wait()) as stopped:
        await asyncio.wait([unused, stopped], timeout=within_s, return_when=asyncio.FIRST_COMPLETED)


async def _keep_closing_idle(runner: Runner) -> None:
    """Close idle connections, including those that become idle at the end of a response."""
    while not stopping():
        runner.close_idle()
        await pause(_CLOSE_IDLE_EVERY_S)


async def _unused(runner: Runner, supervisor: Supervisor) -> None:
    """Wait until no stream is running and all connections are closed.

    While the process retires, idle connections are not closed, because a request might already be on its way.
    Proxies and clients reuse them for less than `RETIRING_S`.
    """
    while len(supervisor) or runner.connections:  # noqa: ASYNC110 - polling is cheap here, and happens once per process
        await asyncio.sleep(_POLL_S)
