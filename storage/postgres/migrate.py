"""Database migrations: applies each numbered file of `migrations/` exactly once, in order."""

import asyncio
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import asyncpg

from storage.postgres.database import Connection, first_connection, map_errors
from storage.postgres.hosts import Hosts
from streams.wire.ids import sha256_hex

MIGRATIONS = Path(__file__).parent / "migrations"
ALONE = "-- no-transaction"
"""First line of a file that PostgreSQL refuses to run in a transaction (`create index concurrently`).

Such a file may hold only one statement, because PostgreSQL runs several statements in one text as a transaction.
"""

_SCHEMA_OF = re.compile(r"-- schema-of: (\w+) ([0-9a-f]{64})\n")
"""First line of a file whose statements are those of `sql/schema.sql` in an installed package, with its digest."""

_FILE = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_LOCK = 0x7061726C6579  # Any number that no other user of advisory locks in this database takes.
_TABLE = """
create table if not exists schema_migrations (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
)
"""


class MigrationRefused(Exception):
    """The migrations cannot be applied. The message names the file and the reason."""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str
    checksum: str


async def migrate(
    dsn: str, *, folder: Path = MIGRATIONS, wait_s: float = 300, variable: str = "DATABASE_URL"
) -> list[str]:
    """Apply the missing migrations and return the names of their files.

    Several processes may call this at the same time: one applies the migrations, the others wait up to `wait_s`
    for it to finish. They wait for a lock of a session, so `dsn` must not be that of a pooler in transaction mode.
    `variable`: the environment variable that it is from.

    Raises `MigrationRefused` if a file was changed after it was applied, if the database is newer than this code,
    or if a file fails. A file that fails is rolled back, unless it runs outside a transaction.
    """
    files = read_migrations(folder)
    with first_connection(dsn, variable):
        conn = await Hosts(dsn).connect(timeout=10)
    try:
        with map_errors():
            await _lock(conn, wait_s=wait_s)
            await conn.execute(_TABLE)
            return [await _apply(conn, file) for file in await _missing(conn, files)]
    finally:
        await conn.close(timeout=10)


async def unapplied(conn: Connection, *, folder: Path = MIGRATIONS) -> list[str]:
    """Return the names of the files that are not applied yet. Raises `MigrationRefused` like `migrate`."""
    files = read_migrations(folder)
    if await conn.fetchval("select to_regclass('schema_migrations')") is None:
        return [file.name for file in files]
    return [file.name for file in await _missing(conn, files)]


def read_migrations(folder: Path) -> list[Migration]:
    """Return the migrations in `folder`, ordered by number.

    Raises `MigrationRefused` if a file name has no number or a number occurs twice.
    """
    migrations: dict[int, Migration] = {}
    for path in sorted(folder.glob("*.sql")):
        match = _FILE.fullmatch(path.name)
        if match is None:
            raise MigrationRefused(f"{path.name} is not named like 0001_accounts.sql")
        version = int(match[1])
        if version in migrations:
            raise MigrationRefused(f"{path.name} and {migrations[version].name} have the same number")
        raw = path.read_bytes()
        migrations[version] = Migration(version, path.name, _statements(path.name, raw.decode()), sha256_hex(raw))
    return list(migrations.values())


def _statements(name: str, text: str) -> str:
    """The statements of a file: its own text, or the schema of the package that its first line names."""
    line = _SCHEMA_OF.match(text)
    if line is None:
        return text
    package, digest = line.groups()
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MigrationRefused(f"{name} needs the package {package}, which is not installed")
    schema = Path(spec.submodule_search_locations[0], "sql", "schema.sql").read_bytes()
    if sha256_hex(schema) != digest:
        raise MigrationRefused(f"{name} is made for another version of {package}: the digest of its schema differs")
    return schema.decode()


async def _lock(conn: Connection, *, wait_s: float) -> None:
    """Take the lock that allows one process at a time to migrate. It is released when the connection closes.

    The lock is polled, because a session that blocks on it would hold a snapshot, and `create index concurrently`
    waits for all older snapshots to end.
    """
    try:
        async with asyncio.timeout(wait_s):
            while not await conn.fetchval("select pg_try_advisory_lock($1)", _LOCK):  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise MigrationRefused(f"another process has been migrating for {wait_s:g} s") from None


async def _missing(conn: Connection, files: list[Migration]) -> list[Migration]:
    rows = await conn.fetch("select version, name, checksum from schema_migrations order by version")
    by_version = {file.version: file for file in files}
    for row in rows:
        file = by_version.get(row["version"])
        if file is None:
            raise MigrationRefused(f"the database is newer than this code: it has the migration {row['name']}")
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
                # If a table is locked for long, fail the migration instead of queueing all traffic behind it.
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
