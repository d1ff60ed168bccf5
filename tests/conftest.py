"""Fixtures: real stores, a database and a key prefix per test, the services, the server."""

import asyncio
import gc
import inspect
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest
import uvloop
from _pytest.nodeid import NodeId
from aiohttp import ClientSession, TCPConnector
from prometheus_client.samples import Sample

from app.observing.logs import LineRate
from app.services import Services, open_services
from app.settings import Settings
from deploy.stores import Stores
from tests import card_numbers
from tests.calendar.calendar_tests import depends_on_date
from tests.chance.scheduling import Scheduling
from tests.connections import check_connections
from tests.environment import forget_settings, log_plain_tracebacks, raise_descriptor_limit, trust_nobody
from tests.password_hashes import hash_cheaply
from tests.running import forks
from tests.running.backend_errors import check_backend_error
from tests.running.object_stores import s3_of_all
from tests.running.poolers import pooler_of_all
from tests.running.restoring import keep_configs, restored
from tests.running.servers import (
    Databases,
    Server,
    listening_socket,
    local_engines,
    new_server,
    open_databases,
    running_server,
    running_stores,
    settings_of,
)

forget_settings()
trust_nobody()
log_plain_tracebacks()
raise_descriptor_limit()
hash_cheaply()

# Without a deadline, as the machine may be busy.
hypothesis.settings.register_profile("parley", deadline=None, max_examples=40)
hypothesis.settings.load_profile("parley")

_RUN = pytest.StashKey[ExitStack]()
_STORES = pytest.StashKey[Stores]()
_SETTLE_S = 10
_GC_THRESHOLDS = (10_000, 20, 20)
"""New objects before a collection of them, and collections before one of older objects: more than by default."""
_OUTLIVES_TESTS = "testbed"
"""The fixture of a module whose client keeps connections, and so server tasks, between tests."""
_ONE_WORKER = {"engines", "local_vendors"}
"""Fixtures of a session that take seconds to create."""
_ONE_A_MODULE = {"module_server", _OUTLIVES_TESTS}
"""Fixtures of a module that each worker would create if the tests of the module were spread."""
_SLOW = (
    "tests/app/doctor/",
    "tests/deploy/",
    "tests/bench/",
    "tests/code/test_contributing.py",
    "tests/test_card_number_search.py",
    "tests/app/http/serving/test_connections.py",
    "tests/app/accounts/test_generated_requests.py",
    "tests/app/ai/readers/test_remote_readers.py",
)
"""Tests that start processes or wait for many seconds."""


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of the server."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--examples", type=int, default=1_000, help="examples of each property in a soak")
    parser.addoption("--pooler", action="store_true", help="let servers reach PostgreSQL through PgBouncer")
    parser.addoption("--s3", action="store_true", help="let servers have their files in buckets of an S3 server")
    parser.addoption("--valkey-cluster", action="store_true", help="let servers use a Valkey Cluster")
    parser.addoption("--all-scripts", action="store_true", help="fail unless the cluster has run all Lua scripts")


def pytest_configure(config: pytest.Config) -> None:
    if _is_soak(config):
        examples = config.getoption("examples")
        hypothesis.settings.register_profile("soak", deadline=None, max_examples=examples)
        hypothesis.settings.load_profile("soak")


def _top_level_name(item: pytest.Item) -> str:
    """Return the name of a test function, or of the class whose method a test is."""
    return item.nodeid.split("::")[1].partition("[")[0]


def _is_soak(config: pytest.Config) -> bool:
    return config.getoption("markexpr") == "soak"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exclude modules and tests from garbage collections: each would walk a million objects that stay.

    By default, collections would take one twentieth of the CPU time of the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Have one worker of xdist run the tests that share an engine or a server, and start with the longest tests.

    If a test of 20 s, or a group of tests for one worker, ran last, the other workers would be idle meanwhile. The
    tests of processes are not all at the beginning, because they would wait for each other's processes to start. A
    soak runs the tests of properties too, with many more examples.
    """
    selects_dates = "calendar" in config.getoption("markexpr")
    for item in items:
        if selects_dates and depends_on_date(item.path, _top_level_name(item)):
            item.add_marker("calendar")
        if config.getoption("valkey_cluster") and item.get_closest_marker("one_valkey"):
            item.add_marker(pytest.mark.skip(reason="asks or breaks a single Valkey"))
        if config.getoption("s3") and item.get_closest_marker("folder"):
            item.add_marker(pytest.mark.skip(reason="looks into the folder of files"))
        if _is_soak(config) and hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("soak")
        if "databases" in getattr(item, "fixturenames", ()) and not inspect.iscoroutinefunction(item.obj):
            raise pytest.UsageError(f"{item.nodeid} must be a coroutine: its fixtures use the loop")
        if group := _group_of(item):
            item.add_marker(pytest.mark.xdist_group(group))
    last = {id(item) for item in items if not _is_long(item)}
    yield
    for item in items:
        if with_group := getattr(item, "_nodeid", ""):  # xdist 3.8 sets `_nodeid`, but pytest 9.2 reads `_id`.
            item._id = NodeId.parse(with_group)
    items.sort(key=lambda item: id(item) in last)


def _group_of(item: pytest.Item) -> str | None:
    """Return the name of the tests that one worker runs because they share what is slow to create."""
    fixtures = set(getattr(item, "fixturenames", ()))
    if item.get_closest_marker("xdist_group") is not None:
        return None
    if shared := _ONE_WORKER & fixtures:
        return min(shared)
    return item.module.__name__ if _ONE_A_MODULE & fixtures else None


def _is_long(item: pytest.Item) -> bool:
    """Return whether a test is long, or belongs to a group of tests for one worker."""
    return item.nodeid.startswith(_SLOW) or item.get_closest_marker("xdist_group") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[pytest.TestReport]:
    """Fail a test in whose output, which has the logs of its servers, is the number of a card.

    Remove the captured output of what has passed. Nobody reads it, but workers of xdist would send it.
    """
    report = yield
    if report.passed and card_numbers.shows_number("".join(text for _, text in report.sections), card_numbers.SENT):
        report.outcome, report.longrepr = "failed", "the number of a card is in the log"
    if report.passed:
        report.sections.clear()
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log) -> Scheduling | None:
    return Scheduling(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Let the workers of xdist share the stores of the process that started them."""
    stores = _stores(node.config)
    node.workerinput["stores"] = {"database_url": stores.database_url, "redis_url": stores.redis_url}


def pytest_unconfigure(config: pytest.Config) -> None:
    forks.end()
    if _RUN in config.stash:
        config.stash[_RUN].close()


def _stores(config: pytest.Config) -> Stores:
    """Return the stores of this run. Starts them at the first call."""
    shared = getattr(config, "workerinput", {}).get("stores")
    if shared:
        return Stores(**shared)
    if _STORES not in config.stash:
        config.stash[_RUN] = ExitStack()
        config.stash[_STORES] = config.stash[_RUN].enter_context(
            running_stores(
                clustered=config.getoption("valkey_cluster"), all_scripts=config.getoption("all_scripts")
            )
        )
    return config.stash[_STORES]


@pytest.fixture(scope="session")
def stores(request: pytest.FixtureRequest) -> Stores:
    """PostgreSQL and Valkey of this run. The database of the URL is only for administration."""
    return _stores(request.config)


@pytest.fixture(scope="session")
def local_vendors() -> Iterator[str]:
    """The URL of the local engines. A test that names this fixture has them in its `settings` too."""
    with local_engines() as url:
        yield url


@pytest.fixture(scope="session")
async def databases(stores: Stores, pytestconfig: pytest.Config) -> AsyncIterator[Databases]:
    with (
        pooler_of_all(stores.database_url) if pytestconfig.getoption("--pooler") else nullcontext(),
        s3_of_all() if pytestconfig.getoption("--s3") else nullcontext(),
    ):
        async with open_databases(stores) as opened:
            yield opened


@pytest.fixture
async def database_url(request: pytest.FixtureRequest, databases: Databases) -> AsyncIterator[str]:
    """A migrated database of this test. With `services`, it holds the app `default` and its configs."""
    async with databases.new(seeded="services" in request.fixturenames) as url:
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
    engines = "local_vendors" in request.fixturenames
    return settings_of(
        stores,
        database_url,
        listener.getsockname()[1],
        tmp_path / "data",
        local_url=request.getfixturevalue("local_vendors") if engines else None,
    )


@pytest.fixture
async def services(settings: Settings) -> AsyncIterator[Services]:
    """The services of a server with the development app `default`."""
    async with open_services(settings) as opened:
        yield opened
        await check_connections(opened)


@pytest.fixture
async def server(services: Services, listener: socket.socket) -> AsyncIterator[Server]:
    async with running_server(services, listener) as running:
        yield running


@pytest.fixture(scope="module")
async def module_server(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """One server for all tests of a module, which must not depend on each other's data."""
    async with new_server(databases, tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
async def guest(module_server: Server) -> AsyncIterator[Server]:
    """`module_server` for one test, whose client has its own address, as some limits count by address."""
    address = f"127.{secrets.randbelow(255)}.{secrets.randbelow(255)}.{2 + secrets.randbelow(250)}"
    connector = TCPConnector(local_addr=(address, 0))
    async with ClientSession(connector=connector, raise_for_status=check_backend_error) as http:
        yield replace(module_server, http=http)


@pytest.fixture(scope="module")
async def _kept_configs(module_server: Server) -> None:
    await keep_configs(module_server)


@pytest.fixture
async def shared_server(_kept_configs: None, guest: Server) -> AsyncIterator[Server]:
    """`guest` for a test that begins streams and writes rows and configs. None of these remain after the test."""
    async with restored(guest):
        yield guest
    await check_connections(guest.services)


@pytest.fixture
def unused_line_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let anonymous requests of a test be logged, even if earlier tests have used up the lines of this second."""
    monkeypatch.setattr("app.http.request.pipeline._anonymous_lines", LineRate(100, "request.lines_dropped"))


@pytest.fixture(scope="session")
async def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def _listens(task: asyncio.Task) -> bool:
    """Return whether procrastinate's worker waits for notifications in a task, which it begins anew every 30 s."""
    return type(task.get_coro()).__name__ == "async_generator_asend"


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a task in the loop, which all tests of a worker share."""
    if not inspect.iscoroutinefunction(request.function) or _OUTLIVES_TESTS in request.fixturenames:
        yield
        return
    loop = request.getfixturevalue("_loop")  # The loop only runs for the fixture if a task is left.
    before = asyncio.all_tasks(loop)
    yield
    left = {task for task in asyncio.all_tasks(loop) - before if not _listens(task)}
    if left:
        _, left = loop.run_until_complete(asyncio.wait(left, timeout=_SETTLE_S))
    assert not left, f"tasks remain: {left}"


@pytest.fixture(scope="session", autouse=True)
def _no_card_number_in_log_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail the last test of this process if a file with the log of a server has the number of a card."""
    yield
    found = [str(path) for path in card_numbers.logs_with(tmp_path_factory.getbasetemp(), card_numbers.SENT)]
    assert not found, f"numbers of cards are in {found}"


@pytest.fixture(autouse=True)
def _no_unlisted_error() -> Iterator[None]:
    """Fail a test in which a server of this process answered with an error that its row does not list."""
    before = _unlisted_errors()
    yield
    assert _unlisted_errors() == before, "an endpoint answered with an error that its row does not list"


@pytest.fixture(autouse=True)
def _no_crossed_slots() -> Iterator[None]:
    """Fail a test in which a command had keys in several slots of a cluster. redis-py does not even send it."""
    before = _crossed_slots()
    yield
    assert _crossed_slots() == before, "a command had keys in several slots"


def _crossed_slots() -> int:
    refused = sys.modules.get("storage.valkey.refused")
    return 0 if refused is None else refused.REFUSED.counts().get(("CROSSSLOT",), 0)


def _unlisted_errors() -> list[Sample]:
    row_errors = sys.modules.get("app.http.rows.row_errors")
    return [] if row_errors is None else row_errors.UNLISTED.collect()[0].samples
