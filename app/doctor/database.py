"""Checks the contents of PostgreSQL: migrations, operators, and jobs that no worker takes."""

from collections.abc import AsyncIterator

from app.doctor.findings import Area
from app.doctor.surroundings import Surroundings
from storage.jobs import jobs
from storage.operators import operators
from storage.operators.doctor_reports import Finding
from storage.postgres.database import Connection, open_database
from storage.postgres.migrate import MigrationRefused, unapplied
from streams.wire.errors import StoreError

AREA = Area("database")
_LATE_S = 300
_SHOWN = 5


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    try:
        async with (
            open_database(
                here.settings.database_url, max_size=1, acquire_timeout_s=5, pooled=here.settings.is_pooled
            ) as database,
            database.connection() as conn,
        ):
            migrations, complete = await _migrations(conn)
            yield migrations
            if complete:
                yield await _operators(conn)
                yield await _late_jobs(conn)
    except StoreError as error:
        yield AREA.broken(
            "not checked",
            str(error),
            why="migrations, operators and jobs are in PostgreSQL, which cannot be read",
            fix="repair it: doctor --only postgres",
        )


async def _migrations(conn: Connection) -> tuple[Finding, bool]:
    """Return the finding, and whether all tables of this version exist."""
    try:
        missing = await unapplied(conn)
    except MigrationRefused as error:
        finding = AREA.broken(
            "migrations",
            str(error),
            why="this version of Parley does not fit the tables",
            fix="run the version of Parley that has applied the newest migration, or a newer one",
        )
        return finding, False
    if not missing:
        return AREA.good("migrations", "all are applied"), True
    shown = ", ".join(missing[:_SHOWN]) + (" …" if len(missing) > _SHOWN else "")
    finding = AREA.broken(
        "migrations",
        f"{len(missing)} {'is' if len(missing) == 1 else 'are'} not applied: {shown}",
        why="requests that use the new tables fail",
        fix="run `python -m app migrate`",
    )
    return finding, False


async def _operators(conn: Connection) -> Finding:
    count = len(await operators.all_operators(conn))
    if count:
        return AREA.good(
            "operators", f"{count} {'operator has a token' if count == 1 else 'operators have tokens'}"
        )
    return AREA.doubtful(
        "operators",
        "there are none, so everybody uses the root token",
        why="the audit log cannot say who has changed something, and no single person's access can be revoked",
        fix="run `python -m app operators add NAME --role ROLE` for each person and program",
    )


async def _late_jobs(conn: Connection) -> Finding:
    late = [one for one in await jobs.job_counts(conn) if one.status == "todo" and one.oldest_s > _LATE_S]
    if not late:
        return AREA.good("jobs", f"none has been due for more than {_LATE_S} s")
    oldest = max(late, key=lambda one: one.oldest_s)
    return AREA.broken(
        "jobs",
        f"{oldest.task} has been due for {oldest.oldest_s:.0f} s",
        why="without a worker no email is sent, no webhook is processed, and nothing old is deleted",
        fix="start `python -m app worker` (deploy/parley-worker.service), or start more of them",
    )
