"""Checks PostgreSQL: whether it can be used, its version, latency, limits and clock."""

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from app.doctor import database_ways
from app.doctor.findings import Area
from app.doctor.surroundings import Surroundings
from storage.conversations.turns import CONNECTIONS
from storage.operators.doctor_reports import Finding
from storage.postgres.database import Connection, Database, open_database
from streams.wire.errors import StoreError

AREA = Area("postgres")
MAX_SKEW_S = 1.0
"""With a larger difference, a process may see a turn or a token that begins in its future."""
_OLDEST_VERSION = 15
_TRIES = 7
_SLOW_MS = 10
_POOL = 20
"""The maximum size of the pool of `open_database`. Every process also has a pool for the writer of turns."""
_OTHERS = 3
"""Connections of a process outside of its pools: for watching sessions, and for probes."""
_PROBE_KB = 256
_SETTINGS = """
select name, setting from pg_settings where name in (
    'server_version', 'server_version_num', 'max_connections', 'superuser_reserved_connections', 'fsync',
    'full_page_writes', 'synchronous_commit', 'temp_file_limit', 'log_temp_files'
)
"""
_CRASH_SAFE = ("fsync", "full_page_writes", "synchronous_commit")


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    settings = here.settings
    try:
        async for finding in database_ways.check(AREA, here):
            yield finding
        async with open_database(
            settings.database_url, max_size=1, acquire_timeout_s=5, pooled=settings.is_pooled
        ) as database:
            yield AREA.good("connection", "it accepts connections")
            yield await _writes(database)
            async with database.connection() as conn:
                given = {row["name"]: row["setting"] for row in await conn.fetch(_SETTINGS)}
                yield _version(given)
                yield await _latency(conn)
                yield await _clock(conn, here)
                for finding in _limits(given, here):
                    yield finding
    except StoreError as error:
        yield AREA.broken(
            "connection",
            str(error),
            why="without PostgreSQL, /readyz returns 503 and nothing works",
            fix="start PostgreSQL, or correct DATABASE_URL",
        )


async def _writes(database: Database) -> Finding:
    try:
        await database.ping()
    except StoreError as error:
        return AREA.broken(
            "writes",
            str(error),
            why="Parley stores every turn and every account, so /readyz returns 503",
            fix="free space on its disk, connect to the primary instead of a replica, and leave "
            "default_transaction_read_only off",
        )
    return AREA.good("writes", "it accepts writes")


def _version(given: dict[str, str]) -> Finding:
    version, number = given["server_version"].split()[0], int(given["server_version_num"])
    if number < _OLDEST_VERSION * 10_000:
        return AREA.broken(
            "version",
            version,
            why=f"migrations need PostgreSQL {_OLDEST_VERSION} or newer",
            fix="upgrade PostgreSQL",
        )
    return AREA.good("version", version)


async def latency_finding(
    area: Area, ping: Callable[[], Awaitable[object]], *, store: str, slow_ms: float, why: str
) -> Finding:
    """Return the finding about the median round-trip time to a store. `ping` makes one round trip."""
    times = []
    for _ in range(_TRIES):
        began = time.perf_counter()
        await ping()
        times.append((time.perf_counter() - began) * 1000)
    median = statistics.median(times)
    seen = f"{median:.1f} ms for a round trip"
    if median > slow_ms:
        return area.doubtful("latency", seen, why=why, fix=f"run Parley in the same network as {store}")
    return area.good("latency", seen)


async def _latency(conn: Connection) -> Finding:
    return await latency_finding(
        AREA,
        lambda: conn.fetchval("select 1"),
        store="PostgreSQL",
        slow_ms=_SLOW_MS,
        why="a turn waits for two to four round trips before its first word",
    )


async def _clock(conn: Connection, here: Surroundings) -> Finding:
    began = here.clock()
    stored = await conn.fetchval("select extract(epoch from clock_timestamp())::float8")
    return clock_finding(AREA, stored - (began + here.clock()) / 2)


def clock_finding(area: Area, skew_s: float) -> Finding:
    """Return the finding about the clock of a store that is `skew_s` ahead of this machine's."""
    seen = f"{abs(skew_s):.3f} s {'ahead of' if skew_s > 0 else 'behind'} the clock of this machine"
    if abs(skew_s) > MAX_SKEW_S:
        return area.doubtful(
            "clock",
            seen,
            why="sessions, limits and signatures compare times of both, so they end early or late",
            fix="run a time service (chrony, systemd-timesyncd) on both machines",
        )
    return area.good("clock", seen)


def _limits(given: dict[str, Any], here: Surroundings) -> Iterator[Finding]:
    free = int(given["max_connections"]) - int(given["superuser_reserved_connections"])
    needed = here.settings.processes * (_POOL + CONNECTIONS + _OTHERS)
    seen = f"{free} for all clients; {here.settings.processes} processes of this server use up to {needed}"
    if here.settings.is_pooled:
        yield AREA.good("connections", f"{seen}, of which the pooler needs as many as its pool has")
    elif needed > free:
        yield AREA.doubtful(
            "connections",
            seen,
            why="under load, requests fail because PostgreSQL refuses further connections",
            fix="raise max_connections, also for workers, other servers, and processes that are replaced",
        )
    else:
        yield AREA.good("connections", seen)
    if off := [name for name in _CRASH_SAFE if given[name] == "off"]:
        yield AREA.doubtful(
            "durability",
            f"{', '.join(off)} {'is' if len(off) == 1 else 'are'} off",
            why="a crash of its machine loses payments and turns that were confirmed, or damages the database",
            fix=f"set {', '.join(f'{name} = on' for name in off)}",
        )
    else:
        yield AREA.good("durability", "confirmed writes survive a crash")
    yield from _temporary_files(given)


def _temporary_files(given: dict[str, Any]) -> Iterator[Finding]:
    limit, logged = int(given["temp_file_limit"]), int(given["log_temp_files"])
    if 0 <= limit < _PROBE_KB:
        yield AREA.broken(
            "temp_file_limit",
            f"{limit} kB",
            why="/readyz writes a temporary file of 130 kB to notice a full disk, and fails",
            fix=f"set temp_file_limit to {_PROBE_KB}kB or more, or to -1",
        )
    elif 0 <= logged < _PROBE_KB:
        yield AREA.doubtful(
            "log_temp_files",
            f"{logged} kB",
            why="/readyz writes a temporary file of 130 kB every ten seconds, and PostgreSQL logs each",
            fix=f"set log_temp_files to {_PROBE_KB}kB or more, or to -1",
        )
    else:
        yield AREA.good("temporary files", "allowed, and not logged")
