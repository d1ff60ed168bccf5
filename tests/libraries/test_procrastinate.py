"""The tables and functions of procrastinate that `storage` uses without its Python interface."""

from pathlib import Path

import procrastinate
from procrastinate.manager import JobManager

from storage.postgres.migrate import MIGRATIONS, MigrationRefused, read_migrations
from tests.libraries.installed import lacking, version_fault

USED = (
    "procrastinate_jobs_queueing_lock_idx_v1 ON procrastinate_jobs (queueing_lock) WHERE status = 'todo'",
    "TRIGGER procrastinate_jobs_notify_queue_job_inserted_v1\n    AFTER INSERT ON procrastinate_jobs",
    "TRIGGER procrastinate_trigger_status_events_insert_v1\n    AFTER INSERT ON procrastinate_jobs",
    "CREATE TABLE procrastinate_jobs",
    "CREATE TABLE procrastinate_events",
    "CREATE TABLE procrastinate_workers",
    "last_heartbeat timestamp",
    "worker_id bigint REFERENCES procrastinate_workers(id) ON DELETE SET NULL",
)


def test_the_version_is_in_the_range_that_was_tested() -> None:
    assert version_fault("procrastinate") is None


def test_the_schema_is_that_of_the_migration() -> None:
    fault = ""
    try:
        read_migrations(MIGRATIONS)
    except MigrationRefused as error:
        fault = str(error)

    assert fault == "", "the schema of procrastinate has changed: a further migration has to apply the difference"


def test_the_job_manager_has_the_methods_that_are_overridden() -> None:
    use = "app/work/job_attempts.py overrides it or calls it there"
    assert lacking(JobManager, {"retry_job": use, "finish_job": use}) == []
    assert hasattr(procrastinate.App(connector=procrastinate.PsycopgConnector()), "job_manager"), (
        "see app/work/worker.py"
    )


def test_the_schema_has_the_names_that_the_sql_uses() -> None:
    schema = (Path(procrastinate.__file__).parent / "sql" / "schema.sql").read_text()

    missing = [
        f"the schema of procrastinate has no {name}: see storage/jobs/jobs.py and storage/jobs/stalled_jobs.py"
        for name in USED
        if name not in schema
    ]
    assert missing == []
