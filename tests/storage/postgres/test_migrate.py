"""Every migration is applied once, also by concurrent processes, and must not change afterwards."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import asyncpg
import pytest

from storage.postgres.migrate import MIGRATIONS, MigrationRefused, migrate, read_migrations


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_words.sql").write_text("create table words (word text);\ncreate table more (n integer);")
    (folder / "0002_first.sql").write_text("insert into words values ('first')")
    return folder


async def words(dsn: str) -> list[str]:
    conn = await asyncpg.connect(dsn)
    try:
        return [row["word"] for row in await conn.fetch("select word from words")]
    finally:
        await conn.close()


async def test_own_migrations_apply_to_an_empty_database_once(empty):
    names = [file.name for file in read_migrations(MIGRATIONS)]
    assert "0001_configs.sql" in names
    assert await migrate(empty) == names
    assert await migrate(empty) == []


async def test_four_concurrent_migrations_apply_each_file_once(empty, folder):
    applied = await asyncio.gather(*(migrate(empty, folder=folder) for _ in range(4)))
    assert sorted(map(len, applied)) == [0, 0, 0, 2]
    assert await words(empty) == ["first"]


async def test_a_new_file_is_applied_to_a_database_in_use(empty, folder):
    await migrate(empty, folder=folder)
    (folder / "0003_second.sql").write_text("insert into words values ('second')")
    assert await migrate(empty, folder=folder) == ["0003_second.sql"]
    assert await words(empty) == ["first", "second"]


async def test_a_file_changed_after_it_was_applied_is_refused(empty, folder):
    await migrate(empty, folder=folder)
    (folder / "0002_first.sql").write_text("insert into words values ('other')")
    (folder / "0003_second.sql").write_text("insert into words values ('second')")
    with pytest.raises(MigrationRefused, match=r"0002_first\.sql was changed"):
        await migrate(empty, folder=folder)
    assert await words(empty) == ["first"]


async def test_a_database_newer_than_the_code_is_refused(empty, folder):
    await migrate(empty, folder=folder)
    (folder / "0002_first.sql").unlink()
    with pytest.raises(MigrationRefused, match=r"newer than this code: it has the migration 0002_first\.sql"):
        await migrate(empty, folder=folder)


async def test_a_failed_migration_keeps_only_the_earlier_ones(empty, folder):
    (folder / "0003_bad.sql").write_text("insert into words values ('half');\nselect * from nowhere;")
    with pytest.raises(MigrationRefused, match=r"0003_bad\.sql failed: .*nowhere"):
        await migrate(empty, folder=folder)
    assert await words(empty) == ["first"]
    (folder / "0003_bad.sql").write_text("insert into words values ('whole')")
    assert await migrate(empty, folder=folder) == ["0003_bad.sql"]


async def test_an_index_is_created_concurrently_by_one_process(empty, folder):
    statement = "create index concurrently words_word on words (word)"
    (folder / "0003_index.sql").write_text(f"-- no-transaction\n{statement}")
    applied = await asyncio.gather(*(migrate(empty, folder=folder) for _ in range(3)))
    assert sorted(map(len, applied)) == [0, 0, 3]
    conn = await asyncpg.connect(empty)
    assert await conn.fetchval("select indisvalid from pg_index where indexrelid = 'words_word'::regclass")
    await conn.close()


async def outcome(migrating: Awaitable[list[str]]) -> list[str] | MigrationRefused:
    try:
        return await migrating
    except MigrationRefused as error:
        return error


async def test_callers_that_wait_too_long_for_another_process_get_an_error(empty, folder):
    (folder / "0003_held.sql").write_text("alter table held add column m integer")
    other = await asyncpg.connect(empty)
    await other.execute("create table held (n integer)")
    await other.execute("begin; lock table held")
    async with asyncio.TaskGroup() as group:
        callers = [group.create_task(outcome(migrate(empty, folder=folder, wait_s=0.3))) for _ in range(2)]
        done, waiting = await asyncio.wait(callers, return_when=asyncio.FIRST_COMPLETED)
        assert len(waiting) == 1, "one waits for the table"
        await other.execute("commit")
    await other.close()
    assert len(waiting.pop().result()) == 3
    assert "another process has been migrating" in str(done.pop().result())


@pytest.mark.parametrize("name", ["one.sql", "01_short.sql", "0001_Words.sql"])
def test_a_file_without_a_proper_name_is_refused(folder, name):
    (folder / name).touch()
    with pytest.raises(MigrationRefused, match=name):
        read_migrations(folder)


def test_two_files_of_one_number_are_refused(folder):
    (folder / "0002_again.sql").touch()
    with pytest.raises(MigrationRefused, match="same number"):
        read_migrations(folder)
