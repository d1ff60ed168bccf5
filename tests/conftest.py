"""Fixtures: real stores, a database and a key prefix per test, the services, the server."""

import asyncio
import gc
import inspect
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import hypothesis
import pytest
import uvloop
from prometheus_client.samples import Sample
from pydantic import SecretStr

from app.services import Services, open_services
from app.settings import Settings
from deploy.stores import Stores
from tests.connections import check_connections
from tests.environment import forget_settings
from tests.servers import (
    ADMIN_TOKEN,
    MASTER_KEY,
    Server,
    listening_socket,
    local_engines,
    new_database,
    running_server,
    running_stores,
)

forget_settings()

hypothesis.settings.register_profile("parley", deadline=None)  # the machine may be busy
hypothesis.settings.load_profile("parley")

_RUN = pytest.StashKey[ExitStack]()
_STORES = pytest.StashKey[Stores]()
_SETTLE_S = 1
_ONE_WORKER = {"engines", "local_vendors"}
"""Fixtures of a session that take seconds to make."""
_LONGEST = ("tests/deploy/", "tests/bench/")
"""Folders of tests that start processes."""


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of the server."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exclude modules and tests from garbage collections: each would walk a million objects that stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Have one worker of xdist run all tests of an engine, which each would load, and start with the longest tests.

    Last, a test of 20 s would keep one worker busy while the others have nothing left to do.
    """
    for item in items:
        for fixture in _ONE_WORKER & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group(fixture))
    yield
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Let the workers of xdist share the stores of the process that started them."""
    stores = _stores(node.config)
    node.workerinput["stores"] = {"database_url": stores.database_url, "redis_url": stores.redis_url}


def pytest_unconfigure(config: pytest.Config) -> None:
    if _RUN in config.stash:
        config.stash[_RUN].close()


def _stores(config: pytest.Config) -> Stores:
    """The stores of this run, started when they are first asked for."""
    shared = getattr(config, "workerinput", {}).get("stores")
    if shared:
        return Stores(**shared)
    if _STORES not in config.stash:
        config.stash[_RUN] = ExitStack()
        config.stash[_STORES] = config.stash[_RUN].enter_context(running_stores())
    return config.stash[_STORES]


@pytest.fixture(scope="session")
def stores(request: pytest.FixtureRequest) -> Stores:
    """PostgreSQL and Valkey of this run. The database that the URL names is for administration alone."""
    return _stores(request.config)


@pytest.fixture(scope="session")
def local_vendors() -> Iterator[str]:
    """The URL of the local engines. A test that names this fixture has them in its `settings` too."""
    with local_engines() as url:
        yield url


@pytest.fixture
async def database_url(request: pytest.FixtureRequest, stores: Stores) -> AsyncIterator[str]:
    """A migrated database of this test. With `services`, it holds the app `default` and its configs."""
    async with new_database(stores, seeded="services" in request.fixturenames) as url:
        yield url


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """The socket that `server` listens on."""
    with listening_socket() as held:
        yield held


@pytest.fixture
def settings(
    request: pytest.FixtureRequest,
    stores: Stores,
    database_url: str,
    listener: socket.socket,
    tmp_path: Path,
) -> Settings:
    port = listener.getsockname()[1]
    engines = "local_vendors" in request.fixturenames
    return Settings(
        database_url=database_url,
        redis_url=stores.redis_url,
        redis_prefix=f"test-{uuid4().hex}:",
        master_key=SecretStr(MASTER_KEY),
        admin_token=SecretStr(ADMIN_TOKEN),
        env="development",
        port=port,
        public_url=f"http://127.0.0.1:{port}",
        data_dir=tmp_path / "data",
        local_url=request.getfixturevalue("local_vendors") if engines else None,
        drain_timeout_s=3,
    )


@pytest.fixture
async def services(settings: Settings) -> AsyncIterator[Services]:
    """Everything long-lived, with the development app `default`."""
    async with open_services(settings) as opened:
        yield opened
        await check_connections(opened)


@pytest.fixture
async def server(services: Services, listener: socket.socket) -> AsyncIterator[Server]:
    async with running_server(services, listener) as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> None:
    """Fail a test that leaves a task in its loop."""
    if inspect.iscoroutinefunction(request.function):
        request.getfixturevalue("_no_task_left")


@pytest.fixture(autouse=True)
def _no_unlisted_error() -> Iterator[None]:
    """Fail a test in which a server of this process answered with an error that its row does not list."""
    before = _unlisted_errors()
    yield
    assert _unlisted_errors() == before, "an endpoint answered with an error that its row does not list"


def _unlisted_errors() -> list[Sample]:
    row_errors = sys.modules.get("app.http.row_errors")
    return [] if row_errors is None else row_errors.UNLISTED.collect()[0].samples


@pytest.fixture
async def _no_task_left() -> AsyncIterator[None]:
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        _, left = await asyncio.wait(left, timeout=_SETTLE_S)
    assert not left, f"tasks remain: {left}"
