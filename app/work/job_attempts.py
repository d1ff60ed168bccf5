"""The attempts of jobs: each has a time limit and a log line, and may be followed by another one."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import procrastinate
import structlog
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job as StoredJob
from procrastinate.jobs import Status
from procrastinate.manager import JobManager as StoredJobs
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from prometheus_client import Counter, Histogram
from psycopg.types.json import Jsonb
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_exponential

from app.services import Services
from storage.configs.store import recorded_configs
from storage.jobs import stalled_jobs
from storage.jobs.failures import Failure, columns_of, failure
from storage.jobs.jobs import UNIQUE_WHILE_WAITING, Job
from storage.jobs.outcomes import FINISH, HOLD, RETRY
from storage.jobs.stalled_jobs import DIED, StalledJob
from streams.tasks import pause, stopping
from streams.wire.errors import InternalError, ServiceError, StoreError

log = structlog.get_logger()

_MAX_RETRY_WAIT_S = 3600
_MAX_STORE_WAIT_S = 5
_ROOT = Path(__file__).parents[2]

J = TypeVar("J", bound=Job)

JOB_ATTEMPTS = Counter("parley_job_attempts", "Attempts of jobs by outcome", ["job", "outcome"])
JOB_SECONDS = Histogram(
    "parley_job_seconds", "Time of one attempt", ["job"], buckets=(0.01, 0.1, 1, 10, 60, 300, 3600)
)


def task_of(
    services: Services,
    message: type[J],
    handler: Callable[[Services, J], Awaitable[None]],
    failures: MutableMapping[int, Failure],
) -> Callable[..., Awaitable[None]]:
    """Return the task that procrastinate runs: one attempt, within its time limit, with one log line.

    The failure of a last attempt is left in `failures`, by the id of the job.
    """
    name = message.task

    async def run(context: procrastinate.JobContext, **arguments: Any) -> None:
        job = context.job
        assert job is not None, "the context of a running task has its job"
        began, attempt = time.monotonic(), job.attempts + 1
        bound = log.bind(job=name, job_id=job.id, attempt=attempt)
        outcome = "canceled"
        with recorded_configs() as configs:
            try:
                async with asyncio.timeout(message.timeout_s):
                    await handler(services, message.of(arguments))
                outcome = "succeeded"
            except (Exception, asyncio.CancelledError) as error:
                if stopping():
                    bound.warning("job.canceled")
                    raise
                outcome = "failed" if _failures(job) + 1 < message.attempts else "held"
                if outcome == "held" and job.id is not None:
                    kind, text = _reason(message, error)
                    failures[job.id] = failure(kind, text, process=services.heartbeat.process, configs=configs)
                unexpected = None if isinstance(error, (ServiceError, TimeoutError)) else error
                write = bound.error if outcome == "held" else bound.warning
                write(f"job.{outcome}", error=_cause(message, error), exc_info=unexpected)
                raise
            finally:
                seconds = time.monotonic() - began
                JOB_ATTEMPTS.labels(name, outcome).inc()
                JOB_SECONDS.labels(name).observe(seconds)
                if outcome == "succeeded":
                    bound.info("job.succeeded", ms=round(seconds * 1000, 1))

    return run


def _cause(message: type[Job], error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"unfinished after {message.timeout_s:g} s"
    return str(error) or repr(error)


def _reason(message: type[Job], error: BaseException) -> tuple[str, str]:
    """Return the error type and the message that operators of all roles may read.

    The text of an unexpected error may contain anything, such as the values of a statement, so it is only logged.
    """
    if isinstance(error, ServiceError):
        return error.error_type, error.what
    if isinstance(error, TimeoutError):
        return "timeout", _cause(message, error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(_ROOT)]
    place = f" in {Path(own[-1].filename).relative_to(_ROOT)}, {own[-1].name}" if own else ""
    return InternalError.error_type, f"{type(error).__name__}{place}"


class RetryPolicy(BaseRetryStrategy):
    """Decides when a failed job runs again, as its class specifies."""

    def __init__(self, message: type[Job]) -> None:
        self._message = message

    def get_retry_decision(self, *, exception: BaseException, job: StoredJob) -> RetryDecision | None:
        if stopping():  # The worker ends, which is not a failure of the job. So even the last attempt is repeated.
            return RetryDecision()
        failures = _failures(job)
        if failures + 1 >= self._message.attempts:
            return None
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=self._wait_s(failures)))

    def _wait_s(self, failures: int) -> float:
        """Return the wait after an attempt with `failures` failed attempts before it."""
        message = self._message
        waits = [min(message.retry_after_s * 2.0**number, _MAX_RETRY_WAIT_S) for number in range(failures + 1)]
        if message.last_after_s is not None and failures + 2 == message.attempts:
            return message.last_after_s - sum(waits[:-1])
        return waits[-1]


def _failures(job: StoredJob) -> int:
    """Return the number of failed attempts, without those that ended with the death of a worker."""
    return job.attempts - job.priority


class JobManager(StoredJobs):
    """Stores the outcomes of attempts, as soon as the database is available.

    An attempt whose worker already counts as dead has no effect on the job, because another worker may run it.
    """

    ends = False
    """Whether the worker ends. Then an outcome that cannot be stored is dropped, and the job runs again."""

    def __init__(self, connector: procrastinate.BaseConnector) -> None:
        super().__init__(connector)
        self.failures: dict[int, Failure] = {}
        """The failures of last attempts whose outcome is not stored yet, by the id of the job."""

    async def finish_job(self, job: StoredJob, status: Status, delete_job: bool) -> None:  # noqa: FBT001 - procrastinate's
        """Store that no further attempt follows, and why the job is held if it is."""
        failed = None if job.id is None else self.failures.pop(job.id, None)
        outcome = {"status": status.value, "delete_job": delete_job}
        if failed is None or delete_job:
            await self._store(FINISH, job, **outcome)
        else:
            columns = columns_of(job.task_name, failed)
            await self._store(HOLD, job, **outcome, **columns | {"configs": Jsonb(columns["configs"])})

    async def retry_job(self, job: StoredJob, retry_at: datetime | None = None, *_: Any, **__: Any) -> None:
        """Make a job due again. If another job with its key waits, drop this one, because both do the same work."""
        try:
            await self._store(RETRY, job, retry_at=retry_at or datetime.now(UTC))
        except UniqueViolation as error:
            if error.constraint_name != UNIQUE_WHILE_WAITING:
                raise
            await self.finish_job(job, status=Status.FAILED, delete_job=True)
            log.info("job.dropped", job=job.task_name, job_id=job.id)

    async def _store(self, query: str, job: StoredJob, **outcome: Any) -> None:
        attempt = {"job_id": job.id, "worker_id": job.worker_id, "attempts": job.attempts}
        async for trial in AsyncRetrying(
            retry=retry_if_exception(_is_outage),
            wait=wait_exponential(max=_MAX_STORE_WAIT_S),
            stop=lambda _: self.ends or stopping(),
            before_sleep=partial(_log_unstored, job),
            reraise=True,
        ):
            with trial:
                rows = await self.connector.execute_query_all_async(query, **attempt, **outcome)
        if not rows:
            log.warning("job.superseded", job=job.task_name, job_id=job.id, attempt=job.attempts + 1)


def _log_unstored(job: StoredJob, state: RetryCallState) -> None:
    assert state.outcome is not None, "storing has failed"
    log.warning("job.outcome_not_stored", job=job.task_name, job_id=job.id, error=str(state.outcome.exception()))


def _is_outage(error: BaseException) -> bool:
    return isinstance(error, ConnectorException) and not isinstance(error, UniqueViolation)


async def recover_stalled(services: Services, *, stalled_s: float) -> None:
    """Run the jobs of dead workers again. A job is held only if its workers die again and again.

    Failures are logged, and the next round tries again.
    """
    while not stopping():
        with _logged():
            async with services.database.connection() as conn:
                found = await stalled_jobs.find(conn, stalled_s=stalled_s)
            for job in found:
                with _logged(job=job.task, job_id=job.job_id):
                    await _recover(services, job, stalled_s=stalled_s)
        await pause(stalled_s / 2)


async def _recover(services: Services, job: StalledJob, *, stalled_s: float) -> None:
    async with services.database.connection() as conn:
        recovered = await stalled_jobs.recover(conn, job, stalled_s=stalled_s)
    if recovered is None:
        return
    bound = log.bind(job=job.task, job_id=job.job_id, attempt=recovered.attempts)
    match recovered.status:
        case "todo":
            bound.warning("job.stalled")
        case "failed":
            bound.error("job.held", error=DIED.message)
        case "dropped":
            bound.info("job.dropped")


@contextmanager
def _logged(**fields: Any) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - it is logged with its traceback
        unexpected = None if isinstance(error, ServiceError) else error
        write = log.warning if isinstance(error, StoreError) else log.error
        write("job.not_recovered", error=str(error), exc_info=unexpected, **fields)
