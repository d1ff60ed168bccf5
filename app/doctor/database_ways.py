"""Checks the ways to PostgreSQL: through a pooler, directly, and to a replica."""

from collections.abc import AsyncIterator

from app.doctor.findings import Area
from app.doctor.surroundings import Surroundings
from storage.operators.doctor_reports import Finding
from storage.postgres.ways import Way, find_way
from streams.wire.errors import StoreError


async def check(area: Area, here: Surroundings) -> AsyncIterator[Finding]:
    """Yield findings of the part `area`. Raises `StoreError` if `DATABASE_URL` cannot be used."""
    settings = here.settings
    way = await find_way(settings.database_url, "DATABASE_URL")
    if not settings.is_pooled:
        yield _without_direct(area, way)
    else:
        yield await _with_direct(area, way, settings.direct_url)
    if settings.database_replica_url is not None:
        yield await _replica(area, settings.database_replica_url)


def _mode(way: Way) -> str:
    return "a pooler in transaction mode" if way.shares_sessions else "a pooler"


def _without_direct(area: Area, way: Way) -> Finding:
    if not way.pooled:
        return area.good("pooler", "none: DATABASE_URL leads to PostgreSQL itself")
    return area.broken(
        "pooler",
        f"DATABASE_URL leads to {_mode(way)}, and DATABASE_DIRECT_URL is not set",
        why="statements that are prepared in one session are missing in others, processes do not hear of ended "
        "sessions, and locks of migrations and jobs do not hold",
        fix="set DATABASE_DIRECT_URL to the URL of PostgreSQL itself",
    )


async def _with_direct(area: Area, way: Way, direct_url: str) -> Finding:
    fix = "set DATABASE_DIRECT_URL to the URL of PostgreSQL itself"
    try:
        direct = await find_way(direct_url, "DATABASE_DIRECT_URL")
    except StoreError as error:
        why = "no process starts, and workers run no jobs"
        return area.broken("pooler", str(error), why=why, fix=fix)
    if direct.shares_sessions:
        return area.broken(
            "pooler",
            f"DATABASE_DIRECT_URL leads to {_mode(direct)}",
            why="processes do not hear of ended sessions, and locks of migrations and jobs do not hold",
            fix=fix,
        )
    if direct.server != way.server:
        return area.broken(
            "pooler",
            f"DATABASE_DIRECT_URL leads to {direct.server}, and DATABASE_URL to {way.server}",
            why="jobs, migrations and notifications are those of another database",
            fix=fix,
        )
    if not way.pooled:
        return area.doubtful(
            "pooler",
            "DATABASE_DIRECT_URL is set, but DATABASE_URL leads to PostgreSQL itself",
            why="every statement is parsed each time that it is executed",
            fix="unset DATABASE_DIRECT_URL, or set DATABASE_URL to the URL of the pooler",
        )
    return area.good("pooler", f"{_mode(way)}; DATABASE_DIRECT_URL leads to PostgreSQL itself")


async def _replica(area: Area, url: str) -> Finding:
    fix = "start the replica, correct DATABASE_REPLICA_URL, or unset it"
    try:
        way = await find_way(url, "DATABASE_REPLICA_URL")
    except StoreError as error:
        return area.doubtful("replica", str(error), why="lists for operators are read from the primary", fix=fix)
    if not way.is_standby:
        return area.doubtful(
            "replica",
            "DATABASE_REPLICA_URL leads to a server that is no replica",
            why="it is not used: lists for operators are read from the primary",
            fix=fix,
        )
    return area.good("replica", "it can be read")
