"""Brings a database up to date: every numbered file of `migrations/`, in order, each exactly once."""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from storage.postgres import Connection, map_errors
from streams.wire.ids import sha256_hex

MIGRATIONS = Path(__file__).parent / "migrations"
ALONE = "-- no-transaction"
"""First line of a file that PostgreSQL refuses inside a transaction (`create index concurrently`).

Such a file holds one statement: several in one text are a transaction again.
"""

_FILE = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_LOCK = 0x7061726C6579  # any number that nobody else takes in this database
_TABLE = """
create table if not exists schema_migrations (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
)
"""


class MigrationRefused(Exception):
    """The files and the database do not go together; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str
    checksum: str


async def migrate(dsn: str, *, folder: Path = MIGRATIONS, wait_s: float = 300) -> list[str]:
    """Apply what is missing and return the names of the files applied.

    Any number of processes may call it at once: one works, the others wait up to `wait_s` and find nothing
    left to do. `MigrationRefused`: a file changed after it was applied, the database is newer than this
    code, or a file failed (then nothing of it stands).
    """
    files = read_migrations(folder)
    with map_errors():
        conn = await asyncpg.connect(dsn, timeout=10)
    try:
        await _lock(conn, wait_s=wait_s)
        await conn.execute(_TABLE)
        return [await _apply(conn, file) for file in await _missing(conn, files)]
    finally:
        await conn.close(timeout=10)


def read_migrations(folder: Path) -> list[Migration]:
    """The files of `folder` by number; `MigrationRefused` for a name without one, or a number twice."""
    found: dict[int, Migration] = {}
    for path in sorted(folder.glob("*.sql")):
        match = _FILE.fullmatch(path.name)
        if match is None:
            raise MigrationRefused(f"{path.name} is not named like 0001_accounts.sql")
        version = int(match[1])
        if version in found:
            raise MigrationRefused(f"{path.name} and {found[version].name} have the same number")
        raw = path.read_bytes()
        found[version] = Migration(version, path.name, raw.decode(), sha256_hex(raw))
    return list(found.values())


async def _lock(conn: Connection, *, wait_s: float) -> None:
    """Take the lock that lets one process migrate; it goes with the connection.

    IdempotencyKey for again and again: a session that blocks on it would hold a snapshot, and
    `create index concurrently` waits for every older snapshot to end.
    """
    try:
        async with asyncio.timeout(wait_s):
            while not await conn.fetchval("select pg_try_advisory_lock($1)", _LOCK):  # noqa: ASYNC110 - no event of ours
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise MigrationRefused(f"another process has been migrating for {wait_s:g} s") from None


async def _missing(conn: Connection, files: list[Migration]) -> list[Migration]:
    rows = await conn.fetch("select version, name, checksum from schema_migrations order by version")
    ours = {file.version: file for file in files}
    for row in rows:
        file = ours.get(row["version"])
        if file is None:
            raise MigrationRefused(f"the database is newer than this code: it holds {row['name']}")
        if file.checksum != row["checksum"]:
            raise MigrationRefused(f"{file.name} was changed after it was applied; add a new file instead")
    applied = {row["version"] for row in rows}
    return [file for file in files if file.version not in applied]


async def _apply(conn: Connection, file: Migration) -> str:
    try:
        if file.sql.startswith(ALONE):
            await conn.execute(file.sql)
            await _record(conn, file)
        else:
            async with conn.transaction():
                # A table that is in use fails the migration instead of queueing all traffic behind it.
                await conn.execute("set local lock_timeout = '30s'")
                await conn.execute(file.sql)
                await _record(conn, file)
    except asyncpg.PostgresError as error:
        raise MigrationRefused(f"{file.name} failed: {error}") from error
    return file.name


async def _record(conn: Connection, file: Migration) -> None:
    await conn.execute(
        "insert into schema_migrations (version, name, checksum) values ($1, $2, $3)",
        file.version,
        file.name,
        file.checksum,
    )
