"""Database migrations: applies each numbered file of `migrations/` exactly once, in order."""

import asyncio
import re
from collections.abc import Sequence
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
It has no time limit, so the statement must not block readers or writers while it runs or waits. If it was
interrupted, the next call repeats it.
"""
FIRST_TIMED = 71
"""The first number of a file whose statements have a time limit. Earlier ones change the rows of whole tables."""

_SCHEMA_OF = re.compile(r"-- schema-of: (\w+) ([0-9a-f]{64})\n")
"""First line of a file whose statements are those of `sql/schema.sql` in an installed package, with its digest."""

_CONCURRENT_INDEX = re.compile(
    r"\s*create\s+(?:unique\s+)?index\s+concurrently\s+(?:if\s+not\s+exists\s+)?(\w+)\s+on\s", re.IGNORECASE
)
_COMMENTS = re.compile(r"--[^\n]*\n")
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
class Patience:
    """How long a file waits for locks, and how long its statements may take.

    While a statement waits for the lock of a table, all others that come to the table wait behind it, even those
    that only read. So it gives up soon, lets them pass, and tries again later.
    """

    lock_s: float = 2
    statement_s: float = 20
    """The limit for a statement, which may hold its locks for that long. Files without a transaction have none."""
    pauses_s: Sequence[float] = (1, 2, 5, 10, 20, 30, 60)
    """The pauses between tries."""


PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str
    checksum: str


async def migrate(
    dsn: str,
    *,
    folder: Path = MIGRATIONS,
    wait_s: float = 300,
    variable: str = "DATABASE_URL",
    patience: Patience = PATIENCE,
) -> list[str]:
    """Apply the missing migrations and return the names of their files.

    Several processes may call this at the same time: one applies the migrations, the others wait up to `wait_s`
    for it to finish. They wait for a lock of a session, so `dsn` must not be that of a pooler in transaction mode.
    `variable`: the environment variable that it is from.

    Raises `MigrationRefused` if a file was changed after it was applied, if the database is newer than this code,
    or if a file fails. A file that fails is rolled back, unless it runs outside a transaction. Files that were
    applied before it stay, and the next call continues with it.
    """
    files = read_migrations(folder)
    with first_connection(dsn, variable):
        conn = await Hosts(dsn).connect(timeout=10)
    try:
        with map_errors():
            await _lock(conn, wait_s=wait_s)
            await conn.execute(_TABLE)
            return [await _apply(conn, file, patience=patience) for file in await _missing(conn, files)]
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


async def _apply(conn: Connection, file: Migration, *, patience: Patience) -> str:
    try:
        if file.sql.startswith(ALONE):
            await _apply_alone(conn, file)
        else:
            await _apply_patiently(conn, file, patience=patience)
    except asyncpg.PostgresError as error:
        raise MigrationRefused(f"{file.name} failed: {error}") from error
    return file.name


async def _apply_alone(conn: Connection, file: Migration) -> None:
    """Run a file without a transaction. An index whose build was interrupted is dropped and built again."""
    await conn.execute("set statement_timeout = 0; set lock_timeout = 0")
    index = concurrent_index(file.sql)
    is_valid = None if index is None else await conn.fetchval(_IS_VALID, index)
    if is_valid is False:
        await conn.execute(f"drop index concurrently {index}")
    if not is_valid:
        await conn.execute(file.sql)
    await _record(conn, file)


_IS_VALID = "select indisvalid from pg_index where indexrelid = to_regclass($1)"


def concurrent_index(sql: str) -> str | None:
    """Return the name of the index that `sql` builds concurrently, or `None` if it builds none."""
    match = _CONCURRENT_INDEX.match(_COMMENTS.sub("", sql))
    return None if match is None else match[1]


async def _apply_patiently(conn: Connection, file: Migration, *, patience: Patience) -> None:
    for pause_s in (*patience.pauses_s, None):
        try:
            await _apply_once(conn, file, patience=patience)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
            if pause_s is None:
                tries = len(patience.pauses_s) + 1
                raise MigrationRefused(
                    f"{file.name} was not applied: other transactions held a lock that it needs, in {tries} tries"
                    f" of {patience.lock_s:g} s{await _oldest_transaction(conn)}; migrate again after them"
                ) from error
            await asyncio.sleep(pause_s)
        else:
            return


async def _apply_once(conn: Connection, file: Migration, *, patience: Patience) -> None:
    async with conn.transaction():
        await conn.execute(f"set local lock_timeout = '{patience.lock_s * 1000:.0f}ms'")
        if file.version >= FIRST_TIMED:
            await conn.execute(f"set local statement_timeout = '{patience.statement_s * 1000:.0f}ms'")
        await conn.execute(file.sql)
        await _record(conn, file)


_OLDEST = """
select pid, state, application_name, extract(epoch from clock_timestamp() - xact_start)::float8 as age_s
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
order by xact_start limit 1
"""


async def _oldest_transaction(conn: Connection) -> str:
    """Describe the oldest transaction of the database, which is likely to hold the lock. Empty: there is none."""
    row = await conn.fetchrow(_OLDEST)
    if row is None:
        return ""
    name = f" of {row['application_name']}" if row["application_name"] else ""
    return f" (the oldest: process {row['pid']}{name}, {row['state']}, for {row['age_s']:.0f} s)"


async def _record(conn: Connection, file: Migration) -> None:
    await conn.execute(
        "insert into schema_migrations (version, name, checksum) values ($1, $2, $3)",
        file.version,
        file.name,
        file.checksum,
    )
