"""Tables become partitioned while the previous version uses them: no row is read, lost or stored twice."""

import shutil
from pathlib import Path

import asyncpg
import pytest

from storage.postgres.migrate import MIGRATIONS, Patience, migrate, read_migrations

_LAST_OF_PREVIOUS = 70
_ATTEMPT = """
insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, outcome, elapsed_ms, input_unit,
    output_unit, price, usage_source, created_at)
values ('default', $1, 0, 'u', 'llm', 'chat', 'openai', 'won', 1, 1, 1, 1, 'vendor', now())
on conflict do nothing
"""
_CHANGE = """
insert into audit (actor, action, app_id, kind, name, reason, request_id, address)
values ('root', 'user.ban', 'default', 'user', $1, '', '', '') returning audit_id
"""
_ID = "0198c5d0e1f2789abcdef0123456789{}"
"""An id of August 2025."""


@pytest.fixture
async def previous(empty: str, tmp_path: Path) -> asyncpg.Connection:
    """A connection of the previous version, which has prepared its statements, in a database of that version."""
    for file in read_migrations(MIGRATIONS):
        if file.version <= _LAST_OF_PREVIOUS:
            shutil.copy(MIGRATIONS / file.name, tmp_path)
    await migrate(empty, folder=tmp_path)
    conn = await asyncpg.connect(empty)
    for number in range(3):
        await conn.execute(_ATTEMPT, _ID.format(number))
        assert await conn.fetchval(_CHANGE, f"user {number}") == number + 1
    yield conn
    await conn.close()


async def where(conn: asyncpg.Connection, table: str) -> list[str]:
    rows = await conn.fetch(f"select distinct tableoid::regclass::text as name from {table} order by 1")
    return [row["name"] for row in rows]


async def test_the_previous_version_goes_on_with_its_statements(empty, previous):
    await migrate(empty)

    assert await previous.fetchval("select count(*) from attempts") == 3
    assert await previous.execute(_ATTEMPT, _ID.format(0)) == "INSERT 0 0", "it is stored already"
    assert await previous.execute(_ATTEMPT, _ID.format(4)) == "INSERT 0 1"
    assert await where(previous, "attempts") == ["attempts_first"]
    assert await previous.fetchval(_CHANGE, "user 4") == 4
    assert await where(previous, "audit") == ["audit_first"]
    assert await previous.fetchval("select array_agg(audit_id order by audit_id) from audit") == [1, 2, 3, 4]
    for statement in ("delete from audit", "update audit_first set actor = ''", "truncate audit_first"):
        with pytest.raises(asyncpg.RaiseError, match="append-only"):
            await previous.execute(statement)


async def test_no_row_is_read_and_no_index_is_built_while_the_tables_are_locked(empty, previous, tmp_path):
    """All that depends on the number of rows happens before, in files that lock nobody out."""
    swap = MIGRATIONS / "0075_partitions.sql"
    for file in read_migrations(MIGRATIONS):
        if _LAST_OF_PREVIOUS < file.version < 75:
            shutil.copy(MIGRATIONS / file.name, tmp_path)
    await migrate(empty, folder=tmp_path)
    pages = "select relname, relfilenode from pg_class where relname in ('attempts_first_pkey', 'audit_first_pkey')"
    before = await previous.fetchrow(
        "select pg_relation_filenode('attempts_pkey'), pg_relation_filenode('audit_by_id_and_time'),"
        " pg_relation_filenode('attempts'), pg_relation_filenode('audit')"
    )
    said = []
    async with previous.transaction():
        await previous.execute("set local client_min_messages = debug1")
        previous.add_log_listener(lambda _, message: said.append(message.message))
        await previous.execute(swap.read_text())
    implied = 'partition constraint for table "{}" is implied by existing constraints'
    assert {implied.format("attempts_first"), implied.format("audit_first")} <= set(said)
    built = [line for line in said if line.startswith("building index") and "_first" in line]
    assert built == []
    after = await previous.fetchrow(
        "select pg_relation_filenode('attempts_first_pkey'), pg_relation_filenode('audit_first_pkey'),"
        " pg_relation_filenode('attempts_first'), pg_relation_filenode('audit_first')"
    )
    assert tuple(after) == tuple(before), pages


async def test_a_transaction_that_has_used_a_table_delays_the_change_and_loses_nothing(empty, previous):
    other = await asyncpg.connect(empty)
    transaction = other.transaction()
    await transaction.start()
    await other.execute(_ATTEMPT, _ID.format(5))
    with pytest.raises(Exception, match="other transactions held a lock that it needs"):
        await migrate(empty, patience=Patience(lock_s=0.2, pauses_s=()))
    assert await previous.execute(_ATTEMPT, _ID.format(6)) == "INSERT 0 1"
    await transaction.commit()
    await other.close()
    await migrate(empty)
    assert await previous.fetchval("select count(*) from attempts_first") == 5
