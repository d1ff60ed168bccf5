"""A PostgreSQL whose disk is full: the probe of `ping` notices it, though small writes still succeed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
import pytest

from deploy.stores import embedded_stores
from storage.postgres.database import open_database
from storage.postgres.migrate import migrate
from streams.wire.errors import StoreError
from tests.running.small_disk import small_disk


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fill the disk of `folder` for the duration of the block."""
    filler = folder / "filler"
    file = os.open(filler, os.O_WRONLY | os.O_CREAT)
    try:
        with suppress(OSError):
            while True:
                os.write(file, bytes(4096))
        yield
    finally:
        os.close(file)
        filler.unlink()


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as path:
        yield Path(path)


@pytest.mark.timeout(120)
async def test_full_disk_is_noticed_while_small_writes_succeed_and_the_probe_itself_writes_no_row(
    folder: Path,
) -> None:
    async with small_disk(folder, "size=300m"), embedded_stores(folder, durable=False) as stores:
        await migrate(stores.database_url)
        conn = await asyncpg.connect(stores.database_url)
        next_transaction = "select pg_snapshot_xmax(pg_current_snapshot())::text"
        with filled(folder):
            # The new version of the row fits into an existing page.
            await conn.execute("update schema_migrations set name = name where name like '0001%'")
            for _ in range(3):
                async with open_database(stores.database_url, max_size=1) as database:
                    with pytest.raises(StoreError, match="the database's disk is full"):
                        await database.ping()
        before = await conn.fetchval(next_transaction)
        memory = await conn.fetchval("show work_mem")
        async with open_database(stores.database_url, max_size=1) as database:
            await database.ping()
            async with database.connection() as same:
                assert await same.fetchval("show work_mem") == memory
        assert await conn.fetchval(next_transaction) == before
        await conn.close()
