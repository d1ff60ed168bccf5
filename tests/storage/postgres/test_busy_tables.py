"""Migrations of tables that other transactions use: they give way, try again, and give up with one clear line."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from storage.postgres.migrate import MigrationRefused, Patience, migrate
from tests.waiting import until

_QUICK_TO_GIVE_UP = Patience(lock_s=0.3, pauses_s=(0.01, 0.01))


@pytest.fixture
async def busy(empty: str) -> str:
    """The URL of a database with the table `words`."""
    conn = await asyncpg.connect(empty)
    await conn.execute("create table words as select n from generate_series(1, 3) n")
    await conn.close()
    return empty


@pytest.fixture
async def holder(busy: str) -> AsyncIterator[asyncpg.Connection]:
    """A long transaction that has read `words`."""
    conn = await asyncpg.connect(busy, server_settings={"application_name": "nightly report"})
    await conn.execute("begin")
    await conn.fetch("select * from words")
    yield conn
    await conn.close()


@pytest.fixture
async def other(busy: str) -> AsyncIterator[asyncpg.Connection]:
    conn = await asyncpg.connect(busy)
    yield conn
    await conn.close()


def write(folder: Path, sql: str, *, version: int = 71) -> Path:
    (folder / f"{version:04}_words.sql").write_text(sql)
    return folder


async def wait_for_lock(conn: asyncpg.Connection) -> None:
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    await until(lambda: conn.fetchval(f"select exists ({waiting})"))


async def columns(conn: asyncpg.Connection) -> list[str]:
    found = await conn.fetch("select attname from pg_attribute where attrelid = 'words'::regclass and attnum > 0")
    return [row["attname"] for row in found]


async def test_a_migration_lets_readers_pass_while_a_long_transaction_holds_its_table(
    busy, holder, other, tmp_path
):
    folder = write(tmp_path, "alter table words add column m integer")
    patience = Patience(lock_s=0.3, pauses_s=(0.1,) * 200)
    async with asyncio.TaskGroup() as group:
        migrating = group.create_task(migrate(busy, folder=folder, patience=patience))
        await wait_for_lock(other)
        # This reader waits behind the migration, until the migration gives up.
        assert len(await other.fetch("select * from words", timeout=10)) == 3
        assert not migrating.done()
        await wait_for_lock(other)
        await holder.execute("commit")
    assert migrating.result() == ["0071_words.sql"]
    assert await columns(other) == ["n", "m"]


async def test_a_migration_that_never_gets_its_lock_names_the_oldest_transaction(busy, holder, other, tmp_path):
    folder = write(tmp_path, "create table more (n integer); alter table words add column m integer")
    with pytest.raises(MigrationRefused) as refused:
        await migrate(busy, folder=folder, patience=_QUICK_TO_GIVE_UP)
    line = str(refused.value)
    assert line.startswith(
        "0071_words.sql was not applied: other transactions held a lock that it needs, in 3 tries"
    )
    assert f"process {holder.get_server_pid()} of nightly report, idle in transaction, for" in line
    assert "\n" not in line
    assert await columns(other) == ["n"]
    assert await other.fetchval("select to_regclass('more')") is None
    await holder.execute("commit")
    assert await migrate(busy, folder=folder) == ["0071_words.sql"]


async def test_a_statement_that_takes_too_long_is_rolled_back(busy, other, tmp_path):
    # The sleep is ended by the limit.
    folder = write(tmp_path, "alter table words add column m integer; select pg_sleep(60)")
    with pytest.raises(MigrationRefused, match=r"0071_words\.sql failed: .*statement timeout"):
        await migrate(busy, folder=folder, patience=Patience(statement_s=0.3))
    assert await columns(other) == ["n"]


async def test_an_index_is_built_while_a_long_transaction_holds_its_table_and_writers_pass(
    busy, holder, other, tmp_path
):
    sql = "-- no-transaction\ncreate index concurrently words_by_n on words (n)"
    folder = write(tmp_path, sql)
    await holder.execute("insert into words values (4)")
    async with asyncio.TaskGroup() as group:
        migrating = group.create_task(migrate(busy, folder=folder, patience=_QUICK_TO_GIVE_UP))
        await wait_for_lock(other)
        await other.execute("insert into words values (5)", timeout=10)
        assert not migrating.done(), "it waits for the transaction, however long that is"
        await holder.execute("commit")
    assert migrating.result() == ["0071_words.sql"]


@pytest.mark.parametrize("is_valid", [True, False], ids=["complete", "incomplete"])
async def test_an_interrupted_build_of_an_index_is_repeated(busy, other, tmp_path, is_valid):
    """A process may end while PostgreSQL builds an index, or after that and before it has recorded the file."""
    folder = write(tmp_path, "-- no-transaction\ncreate index concurrently words_by_n on words (n)")
    await other.execute("create index words_by_n on words (n)")
    if not is_valid:
        await other.execute("update pg_index set indisvalid = false where indexrelid = 'words_by_n'::regclass")
    assert await migrate(busy, folder=folder) == ["0071_words.sql"]
    assert await other.fetchval("select indisvalid from pg_index where indexrelid = 'words_by_n'::regclass")
