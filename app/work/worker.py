"""The worker process: runs and retries jobs, holds failed ones, enqueues scheduled ones, and delivers events."""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import procrastinate
import psycopg
import structlog
from aiohttp import web
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker
from prometheus_client import Gauge
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential

from app.http.serving.server import runner_of
from app.main import application
from app.observing import logs
from app.process.sockets import listening_sockets
from app.routes import OPERATIONS_ROUTES
from app.services import Services, open_services
from app.settings import Settings
from app.version import version
from app.work.certificate import watch_certificate
from app.work.event_delivery import deliver_events, measure_events
from app.work.job_attempts import JobManager, RetryPolicy, recover_stalled, task_of
from app.work.jobs import JOBS, JobRow
from app.work.waiting import measure_waiting
from storage.jobs import schedules
from storage.jobs.jobs import QUEUE, job_counts
from streams.tasks import background, pause, stopping
from streams.wire.errors import StoreError
from streams.wire.ids import new_id

log = structlog.get_logger()

_CONCURRENCY = 10
_POLL_S = 0.5
"""Well below the second after which an image task is read again. One poll takes the worker less than 1 ms."""
_HEARTBEAT_S = 2
_STALLED_S = 10
_STOP_S = 30
_LAST_WRITES_S = 5
_MEASURE_S = 10
_MEASURE_SHARE = 0.02
"""The part of the time that may be used for counting. All events are counted, which may be millions after an outage
of their sink."""
_CONNECT_S = 5
_MAX_RECONNECT_WAIT_S = 10
_DROPPED = (
    "audit",
    "conversations",
    "events",
    "exports",
    "keys",
    "mails",
    "sign_ins",
    "speech",
    "tasks",
    "webhooks",
)
"""Suffixes of the jobs `remove_expired_…` that the previous version may have stored. `RemoveExpired` replaces
them."""

JOBS_STORED = Gauge("parley_jobs", "Stored jobs by status", ["job", "status"])
JOBS_OLDEST = Gauge("parley_jobs_oldest_seconds", "Seconds since the oldest job was due", ["job", "status"])


async def run_until_signal(settings: Settings, *, jobs: Sequence[JobRow[Any]] = JOBS) -> None:
    """Run jobs until SIGTERM or SIGINT. Running jobs then get 30 s to finish; interrupted ones run again."""
    process = new_id()
    logs.configure(level=settings.log_level, process=process)
    # `task_of` logs each attempt. The library's own lines contain the messages, which may contain secrets.
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    sockets = _sockets(settings)
    async with (
        open_services(settings, process=process) as services,
        _operations(services, sockets),
        background(_measure(services)),
        background(watch_certificate(settings.public_url)),
        background(deliver_events(services)),
        background(run_jobs(services, jobs=jobs)) as running,
        background(stop.wait()) as stopped,
    ):
        log.info("worker.started", version=version(), pid=os.getpid(), port=settings.worker_port)
        await asyncio.wait([running, stopped], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
    log.info("worker.stopped")


def _sockets(settings: Settings) -> list[socket.socket]:
    if settings.worker_port is None:
        return []
    return listening_sockets(settings.metrics_host, settings.worker_port, variable="PARLEY_WORKER_PORT")


@asynccontextmanager
async def _operations(services: Services, sockets: Sequence[socket.socket]) -> AsyncIterator[None]:
    """Serve `/metrics`, `/healthz` and `/readyz` of this worker on `sockets`."""
    runner = runner_of(application(services, OPERATIONS_ROUTES), shutdown_timeout_s=1)
    await runner.setup()
    try:
        for sock in sockets:
            await web.SockSite(runner, sock).start()
        yield
    finally:
        await runner.cleanup()


async def _measure(services: Services) -> None:
    """Update the gauges of stored jobs and events. While the database is unavailable, they keep their values."""
    while not stopping():
        begun = time.monotonic()
        with suppress(StoreError):
            async with services.database.connection() as conn:
                counts = await job_counts(conn)
            JOBS_STORED.clear()
            JOBS_OLDEST.clear()
            for one in counts:
                JOBS_STORED.labels(one.task, one.status).set(one.count)
                JOBS_OLDEST.labels(one.task, one.status).set(one.oldest_s)
            await measure_events(services)
            await measure_waiting(services)
        await pause(max(_MEASURE_S, (time.monotonic() - begun) / _MEASURE_SHARE))


async def run_jobs(
    services: Services,
    *,
    jobs: Sequence[JobRow[Any]] = JOBS,
    scheduled: bool = True,
    stalled_s: float = _STALLED_S,
    poll_s: float = _POLL_S,
    stop_s: float = _STOP_S,
) -> None:
    """Run jobs until cancelled. While PostgreSQL is unavailable, try to reconnect at least every 10 s.

    `scheduled`: whether to enqueue the jobs that run at fixed times.
    `stalled_s`: a worker without a heartbeat for this long counts as dead, and its jobs are retried.
    `poll_s`: how often to look for jobs that have become due. Workers are notified of new jobs immediately.
    `stop_s`: how long running jobs may take to finish at the end. Then they are interrupted and become due again.
    """
    faults = retry_if_exception_type((ConnectorException, psycopg.Error, OSError))
    wait = wait_exponential(max=_MAX_RECONNECT_WAIT_S)
    async for attempt in AsyncRetrying(
        wait=wait, retry=faults, stop=lambda _: stopping(), before_sleep=_log_outage, reraise=True
    ):
        with attempt:
            app, manager = _application(services, jobs, scheduled=scheduled)
            async with _connected(app), background(recover_stalled(services, stalled_s=stalled_s)):
                if scheduled:
                    await _publish_schedules(services, jobs)
                worker = Worker(
                    app,
                    queues=[QUEUE],
                    concurrency=_CONCURRENCY,
                    fetch_job_polling_interval=poll_s,
                    update_heartbeat_interval=min(_HEARTBEAT_S, stalled_s / 4),
                    stalled_worker_timeout=stalled_s,
                    shutdown_graceful_timeout=stop_s,
                    delete_jobs="successful",
                    install_signal_handlers=False,
                )
                await _run_until_cancelled(worker, manager, stop_s=stop_s)


async def _publish_schedules(services: Services, jobs: Sequence[JobRow[Any]]) -> None:
    """Store the times at which jobs are enqueued, for operators."""
    times = {row.message.task: row.schedule for row in jobs if row.schedule is not None}
    with suppress(StoreError):  # Operators see those of the last worker.
        async with services.database.connection() as conn:
            await schedules.replace(conn, times)


async def _run_until_cancelled(worker: Worker, manager: JobManager, *, stop_s: float) -> None:
    """Run a worker. It is stopped both by cancellation and by an event, because it may lose the cancellation."""
    running = background(worker.run())  # type: ignore[no-untyped-call]
    task = running.start()
    try:
        if not stopping():
            await asyncio.wait([task])
    finally:
        manager.ends = True
        worker.stop()  # type: ignore[no-untyped-call]
        task.cancel()
        await running.end_within(stop_s + _LAST_WRITES_S)
    task.result()
    if not stopping():
        # It stops by itself, and reports this only to its own log, if it can neither listen nor store its
        # heartbeat.
        raise ConnectorException("the connections to the database were lost")


@asynccontextmanager
async def _connected(app: procrastinate.App) -> AsyncIterator[None]:
    """Open the connections of `app`, and close them even if opening them is cancelled."""
    try:
        await app.open_async()
        yield
    finally:
        await app.close_async()


def _application(
    services: Services, jobs: Sequence[JobRow[Any]], *, scheduled: bool
) -> tuple[procrastinate.App, JobManager]:
    connector = procrastinate.PsycopgConnector(
        conninfo=services.settings.direct_url, min_size=1, max_size=4, timeout=_CONNECT_S
    )
    app = procrastinate.App(connector=connector)
    app.job_manager = manager = JobManager(connector)
    for what in _DROPPED:
        app.task(name=f"remove_expired_{what}")(_drop)
    for row in jobs:
        name = row.message.task
        run = task_of(services, row.message, row.handler, manager.failures)
        task = app.task(name=name, retry=RetryPolicy(row.message), pass_context=True)(run)
        if scheduled and row.schedule is not None:
            arguments = row.message().model_dump(mode="json")
            app.periodic(cron=row.schedule, queue=QUEUE, queueing_lock=name, task_kwargs=arguments)(task)
    return app, manager


async def _drop(**_: Any) -> None:
    """Delete a job whose work another job does."""


def _log_outage(state: RetryCallState) -> None:
    assert state.outcome is not None, "an attempt has failed"
    error = state.outcome.exception()
    assert error is not None, "an attempt has failed"
    # procrastinate's error has only a title. psycopg's, from which it is raised, says why in its first line.
    text = str(error.__cause__ or error).strip() or repr(error)
    log.warning("worker.database_unavailable", error=text.partition("\n")[0])
