"""`/readyz`, the log and clients report an unusable store until it can be used again."""

import asyncio
import resource
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from structlog.testing import capture_logs

from app.settings import Settings
from deploy.valkey_cluster import valkey_cluster
from streams.wire.errors import StoreError
from tests.app.valkey_proxy import ValkeyProxy, valkey_proxy_to
from tests.running.another_server import another_server
from tests.running.object_stores import open_store
from tests.running.read_only import read_only
from tests.running.servers import Server
from tests.running.small_disk import small_disk
from tests.waiting import until

KEY = "conversation/0198c0de/1/0.mp3"
FULL = """
create function full_disk() returns trigger language plpgsql as $$ begin
    raise exception 'could not extend file "base/1/2": No space left on device' using errcode = '53100';
end $$;
create trigger full_disk before insert on users execute function full_disk()
"""


async def ready(server: Server) -> tuple[int, dict[str, Any]]:
    async with server.http.get(f"{server.url}/readyz") as response:
        return response.status, await response.json()


async def until_ready(server: Server) -> None:
    async def is_ready() -> bool:
        return (await ready(server))[0] == 200

    await until(is_ready)


def reported(lines: list[Any], event: str, store: str) -> list[Any]:
    return [line for line in lines if line["event"] == event and line["store"] == store]


async def test_full_database_is_reported_as_not_ready_until_it_accepts_writes_again(
    server: Server, database_url: str
) -> None:
    conn = await asyncpg.connect(database_url)
    await conn.execute(FULL)
    with capture_logs() as lines:
        for number in range(3):
            body = {"device": {"id": f"d{number}"}}
            async with server.http.post(f"{server.url}/bp/user/login", json=body) as response:
                assert response.status == 503
                assert (await response.json())["error"]["message"] == "database: the database's disk is full"
        status, answer = await ready(server)
    assert (status, answer["parts"]["postgres"]) == (503, "away")
    assert answer["causes"] == {"postgres": "the database's disk is full"}
    (line,) = reported(lines, "store.unavailable", "postgres")
    assert (line["log_level"], line["cause"]) == ("error", "the database's disk is full")
    assert "could not extend file" in line["detail"]

    await conn.execute("drop trigger full_disk on users")
    await conn.close()
    await until_ready(server)
    await server.login()


@asynccontextmanager
async def users_on_a_small_disk(conn: asyncpg.Connection, folder: Path) -> AsyncIterator[None]:
    """Move the table `users` to a file system of 2 MiB, and create an empty table `filling` on it."""
    owner = Path(await conn.fetchval("show data_directory")).stat().st_uid  # noqa: ASYNC240 - it takes microseconds
    name = f"small_{uuid4().hex}"
    async with small_disk(folder, f"size=2m,mode=700,uid={owner}", lazy=True):
        await conn.execute(f"create tablespace {name} location '{folder}'")
        await conn.execute(f"alter table users set tablespace {name}")
        await conn.execute(f"create table filling (text text) tablespace {name}")
        yield
        await conn.execute("alter table users set tablespace pg_default")
        await conn.execute(f"drop tablespace {name}")


async def fill(conn: asyncpg.Connection) -> None:
    while True:
        await conn.execute("insert into filling select repeat('x', 1000) from generate_series(1, 7)")


async def test_full_disk_of_the_database_is_reported_until_it_has_free_space(
    server: Server, database_url: str
) -> None:
    conn = await asyncpg.connect(database_url)
    with tempfile.TemporaryDirectory() as name:  # PostgreSQL's user has no access to `tmp_path`.
        async with users_on_a_small_disk(conn, Path(name)):
            with pytest.raises(asyncpg.DiskFullError):
                await fill(conn)
            body = {"device": {"id": "d1"}}
            async with server.http.post(f"{server.url}/bp/user/login", json=body) as response:
                assert response.status == 503
                assert (await response.json())["error"]["message"] == "database: the database's disk is full"
            status, answer = await ready(server)
            assert (status, answer["causes"]) == (503, {"postgres": "the database's disk is full"})

            await conn.execute("drop table filling")
            await until_ready(server)
            await server.login()
    await conn.close()


async def test_read_only_database_is_reported_as_not_ready_before_the_first_write(
    server: Server, database_url: str
) -> None:
    async with read_only(database_url):

        async def is_read_only() -> bool:
            return (await ready(server))[1]["causes"] == {"postgres": "the database is read-only"}

        await until(is_read_only)
    await until_ready(server)


@pytest.fixture
async def valkey_proxy(stores, tmp_path: Path) -> AsyncIterator[ValkeyProxy]:
    async with valkey_proxy_to(stores.redis_url, tmp_path / "v.sock") as opened:
        yield opened


class TestPausedValkey:
    @pytest.fixture
    def settings(self, settings: Settings, valkey_proxy: ValkeyProxy) -> Settings:
        return replace(settings, redis_url=valkey_proxy.url)

    async def test_paused_valkey_is_logged_once_when_it_is_unavailable_and_once_when_it_is_back(
        self, server: Server, valkey_proxy: ValkeyProxy
    ) -> None:
        with capture_logs() as lines:
            valkey_proxy.flowing.clear()
            await asyncio.gather(*(server.login() for _ in range(5)))
            _, answer = await ready(server)
            assert answer["parts"]["valkey"] == "degraded"
            assert "in time" in answer["causes"]["valkey"]
            (line,) = reported(lines, "store.unavailable", "valkey")
            assert line["cause"] == "Valkey did not answer in time"
            valkey_proxy.flowing.set()

            async def is_back() -> bool:
                await server.login("always the same device")
                return bool(reported(lines, "store.available", "valkey"))

            await until(is_back, every_s=0.1)
        assert [line["log_level"] for line in reported(lines, "store.unavailable", "valkey")] == ["error"]
        (back,) = reported(lines, "store.available", "valkey")
        assert back["log_level"] == "info"
        assert back["away_s"] > 0


async def test_full_valkey_is_reported_until_it_accepts_writes_again(server: Server, tmp_path: Path) -> None:
    async with (
        valkey_cluster(tmp_path, primaries=1, replicas=False) as own,
        another_server(server.services.settings, redis_url=own.url) as full,
    ):
        assert (await ready(full))[1]["parts"]["valkey"] == "ok"
        await own.ask(own.nodes[0], "CONFIG", "SET", "maxmemory", "1")
        await full.services.heartbeat.try_beat()
        status, answer = await ready(full)
        assert (status, answer["parts"]["valkey"]) == (200, "degraded")
        assert answer["causes"]["valkey"] == "Valkey is out of memory (`maxmemory`)"
        await own.ask(own.nodes[0], "CONFIG", "SET", "maxmemory", "0")
        await full.services.heartbeat.try_beat()
        assert (await ready(full))[1]["parts"]["valkey"] == "ok"


@contextmanager
def small_files(limit_bytes: int) -> Iterator[None]:
    """Limit the size of the files that this process writes."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


async def test_folder_that_refuses_writes_is_reported_until_it_accepts_them_again(server: Server) -> None:
    objects, large = server.services.objects, bytes(8 << 20)
    with (
        small_files(4 << 20),
        pytest.raises(StoreError, match="the object store refused: a file would be too large"),
    ):
        await objects.put(KEY, large, content_type="audio/mpeg")
    status, answer = await ready(server)
    assert (status, answer["parts"]["objects"]) == (200, "degraded")
    assert answer["causes"] == {"objects": "the object store refused: a file would be too large"}

    await objects.put(KEY, large, content_type="audio/mpeg")
    assert (await ready(server))[1]["parts"]["objects"] == "ok"


async def test_put_and_ping_report_a_full_disk(tmp_path: Path) -> None:
    async with small_disk(tmp_path, "size=256k"), open_store(folder=tmp_path) as objects:
        await objects.put(KEY, bytes(200 * 1024), content_type="audio/mpeg")
        with pytest.raises(StoreError, match="its disk is full"):
            await objects.ping()
        with pytest.raises(StoreError, match="its disk is full"):
            await objects.put("conversation/0198c0de/1/1.mp3", bytes(100 * 1024), content_type="audio/mpeg")
        await objects.delete([KEY])
        await objects.put(KEY, b"small", content_type="audio/mpeg")
        await objects.ping()
