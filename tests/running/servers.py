"""The stores of a run of the tests, databases, complete servers and the local engines."""

import asyncio
import fcntl
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
from aiohttp import ClientSession, web
from pydantic import SecretStr

from app.process.children import ending_with_parent
from app.services import Services, open_services
from app.settings import Settings
from app.stores import open_stores
from deploy.seeds import seed
from deploy.stores import Stores, embedded_stores
from deploy.valkey_cluster import valkey_cluster
from storage.postgres.migrate import migrate
from streams.wire.codec import loads
from tests import card_numbers
from tests.connections import check_connections
from tests.environment import moved_clock
from tests.running.backend_errors import check_backend_error
from tests.running.object_stores import objects_of
from tests.running.poolers import urls_of
from tests.running.scripts import check_scripts, check_slots

if TYPE_CHECKING:
    from app.http.rows.endpoint import Endpoint

MASTER_KEY = "6f0c1d27a4e95b83" * 4
ADMIN_TOKEN = "an operator of the tests"
SERVER_KEY = "a server of the tests makes tokens with it"
_TEMPLATES = {"parley_migrated": "template0", "parley_seeded": "parley_migrated"}
"""The template databases that test databases are copies of, and the source of each."""
_START_S = 60
_PREFIX = "parley-tests-"
_MEMORY_BYTES = 1 << 30
_SEARCH_S = 20
"""A test may have left a lock."""


@contextmanager
def running_stores(*, clustered: bool = False, all_scripts: bool = False) -> Iterator[Stores]:
    """PostgreSQL and Valkey for one run of the tests, in a loop that is only used to start and stop them.

    `all_scripts`: fail unless the cluster has run all Lua scripts in the end.
    """
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, dir=_swept(fastest_folder())) as folder,
        asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner,
    ):
        context = _stores_in(Path(folder), clustered=clustered, all_scripts=all_scripts)
        stores = runner.run(context.__aenter__())
        try:
            yield stores
        finally:
            runner.run(context.__aexit__(None, None, None))


@asynccontextmanager
async def _stores_in(folder: Path, *, clustered: bool, all_scripts: bool) -> AsyncIterator[Stores]:
    async with embedded_stores(folder, durable=False, env=moved_clock()) as stores:
        if not clustered:
            yield stores
            return
        async with valkey_cluster(folder / "cluster") as cluster:
            yield replace(stores, redis_url=cluster.url)
            await check_slots(cluster)
            if all_scripts:
                await check_scripts(cluster)


def _swept(folder: str) -> str:
    """Return `folder` after removing the data of killed runs, whose locks are free."""
    for left in Path(folder).glob(f"{_PREFIX}*/lock"):
        with suppress(OSError), left.open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left.parent, ignore_errors=True)
    return folder


def fastest_folder() -> str:
    """Return a folder in memory if there is enough of it, where creating a database is about ten times faster."""
    memory = Path("/dev/shm")  # noqa: S108 - a new folder is created in it
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _MEMORY_BYTES:
        return str(memory)
    return tempfile.gettempdir()


@dataclass(frozen=True)
class Databases:
    """Creates databases, over one connection for all of them."""

    stores: Stores
    admin: asyncpg.Connection

    @asynccontextmanager
    async def new(self, *, seeded: bool = False) -> AsyncIterator[str]:
        """Yield the URL of a migrated database, with the configs of a development server if `seeded`."""
        name = f"test_{uuid4().hex}"
        template = "parley_seeded" if seeded else "parley_migrated"
        await self.admin.execute(f"create database {name} template {template} strategy file_copy")
        try:
            yield (url := _named(self.stores, name))
            await _check_card_numbers(url)
        finally:
            await self.admin.execute(f"drop database {name} with (force)")


async def _check_card_numbers(url: str) -> None:
    """Fail the last test that has used a database if the number of a card is stored there."""
    conn = await asyncpg.connect(url, command_timeout=_SEARCH_S)
    try:
        found = await card_numbers.tables_with(conn, card_numbers.SENT)
    finally:
        await conn.close()
    assert not found, f"numbers of cards are stored in {found}"


@asynccontextmanager
async def open_databases(stores: Stores) -> AsyncIterator[Databases]:
    admin = await asyncpg.connect(stores.database_url)
    try:
        await _make_templates(admin, stores)
        yield Databases(stores, admin)
    finally:
        await admin.close()


async def _make_templates(admin: asyncpg.Connection, stores: Stores) -> None:
    """Create the templates once per run, in whichever process is first. Unfinished ones have other names."""
    if await _missing(admin):
        async with _one_at_a_time(admin):
            for name in await _missing(admin):
                await admin.execute("drop database if exists parley_unfinished")
                await admin.execute(f"create database parley_unfinished template {_TEMPLATES[name]}")
                await _fill(name, replace(stores, database_url=_named(stores, "parley_unfinished")))
                await admin.execute(f"alter database parley_unfinished rename to {name}")


async def _missing(admin: asyncpg.Connection) -> list[str]:
    found = {row["datname"] for row in await admin.fetch("select datname from pg_database")}
    return [name for name in _TEMPLATES if name not in found]


async def _fill(name: str, stores: Stores) -> None:
    if name == "parley_migrated":
        await migrate(stores.database_url)
        return
    settings = Settings(
        database_url=stores.database_url,
        redis_url=stores.redis_url,
        redis_prefix="test-template:",
        master_key=SecretStr(MASTER_KEY),
        admin_token=SecretStr(ADMIN_TOKEN),
    )
    async with open_stores(settings) as opened:
        await seed(opened.configs, {"PARLEY_SERVER_KEY": SERVER_KEY})


def settings_of(stores: Stores, database_url: str, port: int, data_dir: Path, **more: Any) -> Settings:
    """Return the settings of a test server, with a new prefix for its Valkey keys."""
    given = {
        **urls_of(database_url),
        "redis_url": stores.redis_url,
        "redis_prefix": f"test-{uuid4().hex}:",
        "master_key": SecretStr(MASTER_KEY),
        "admin_token": SecretStr(ADMIN_TOKEN),
        "env": "development",
        "port": port,
        "public_url": f"http://127.0.0.1:{port}",
        "data_dir": data_dir,
        **objects_of(data_dir),
        "drain_timeout_s": 3,
    }
    return Settings(**{**given, **more})


@asynccontextmanager
async def _one_at_a_time(admin: asyncpg.Connection) -> AsyncIterator[None]:
    await admin.execute("select pg_advisory_lock(1)")
    try:
        yield
    finally:
        await admin.execute("select pg_advisory_unlock(1)")


def _named(stores: Stores, name: str) -> str:
    return stores.database_url.replace("///postgres?", f"///{name}?")


@contextmanager
def listening_socket() -> Iterator[socket.socket]:
    """Yield a socket that listens on a free port."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield listener


@dataclass(frozen=True)
class Server:
    """A complete server over real HTTP. `http` is closed with it."""

    url: str
    services: Services
    http: ClientSession

    async def login(self, device_id: str | None = None) -> tuple[str, str]:
        """Log in with a device, by default a new one. Return the user and a session token."""
        body = {"device": {"id": device_id or uuid4().hex}}
        async with self.http.post(f"{self.url}/bp/user/login", json=body) as response:
            answer = await response.json()
            assert response.status == 200, answer
        return answer["user"]["uid"], answer["user"]["session"]["session_token"]


@asynccontextmanager
async def running_server(
    services: Services, listener: socket.socket, rows: "Sequence[Endpoint] | None" = None
) -> AsyncIterator[Server]:
    """Run the application of `services` on `listener`, with `rows` or all rows of the public port."""
    from app.http.serving.connections import Bounds  # noqa: PLC0415 - most tests need no server
    from app.http.serving.server import runner_of  # noqa: PLC0415
    from app.main import application  # noqa: PLC0415

    runner = runner_of(application(services, rows), shutdown_timeout_s=1, bounds=Bounds.of(services.settings))
    await runner.setup()
    try:
        await web.SockSite(runner, listener, backlog=4096).start()
        async with ClientSession(raise_for_status=check_backend_error) as http:
            yield Server(services.settings.public_url, services, http)
    finally:
        await runner.cleanup()


@asynccontextmanager
async def new_server(
    databases: Databases, data_dir: Path, *, seeded: bool = True, **more: Any
) -> AsyncIterator[Server]:
    """Run a server with a new database. `more`: fields of its settings."""
    async with AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(databases.new(seeded=seeded))
        listener = stack.enter_context(listening_socket())
        settings = settings_of(databases.stores, database_url, listener.getsockname()[1], data_dir, **more)
        services = await stack.enter_async_context(open_services(settings))
        yield await stack.enter_async_context(running_server(services, listener))
        await check_connections(services)


@contextmanager
def local_engines() -> Iterator[str]:
    """Run the installed local engines in a process, with a scripted model without pauses. Yield the URL."""
    with subprocess.Popen(
        [sys.executable, "-m", "vendors.local", "--port", "0", "--pace-ms", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=ending_with_parent(signal.SIGTERM),  # noqa: PLW1509 - two system calls, no lock
    ) as process:
        try:
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], _START_S)
            assert ready, "the local engines were not ready in time"
            yield loads(process.stdout.readline())["listening"]
        finally:
            process.terminate()
