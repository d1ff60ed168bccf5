"""Fixtures: pages in Chromium, and a server whose vendors are controlled by the test or are the local engines.

All tests share one event loop, because the browser stays open for the whole session.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import pytest_asyncio
from aiohttp import ClientSession
from playwright.async_api import Browser, BrowserContext, expect
from pydantic import SecretStr

from app.settings import Settings
from deploy.seeds import seed
from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from streams.audio.audio import wav_header
from tests.browser.accounts_page import AccountsPage, accounts_page, accounts_server
from tests.browser.chromium import running_chromium
from tests.browser.controlled_vendor import ControlledVendor, running_controlled_vendor
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage
from tests.browser.used_operations import USED
from tests.peers.vendor import Vendor, running_vendor
from tests.running.another_server import another_server
from tests.running.servers import ADMIN_TOKEN, MASTER_KEY, SERVER_KEY, Databases, Server, local_engines

SPOKEN = "Good morning. What is the capital of Japan?"
"""The text of the microphone's recording."""
_FOLDER = Path(__file__).parent
_LEADING_SILENCE_S = 0.8
"""Silence before the speech, while the page starts to record."""
_TRAILING_SILENCE_S = 0.3
"""Silence after the speech, because Chromium repeats the last samples of the file."""
_TIMEOUT_MS = 30_000

_RUN = pytest.StashKey[ExitStack]()
_ENGINES = pytest.StashKey[str]()
_FAILED = pytest.StashKey[bool]()

expect.set_options(timeout=_TIMEOUT_MS)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Let all xdist workers use the engines of the main process, so that models are loaded once."""
    node.workerinput["engines"] = _engines(node.config)
    node.workerinput["used_operations"] = str(USED.file)


def pytest_configure(config: pytest.Config) -> None:
    """Let all processes of the run record in one file which operations the console uses."""
    shared = getattr(config, "workerinput", {}).get("used_operations")
    USED.file = Path(shared) if shared else Path(mkdtemp()) / "used_operations"


def pytest_runtest_setup(item: pytest.Item) -> None:
    USED.module = item.path.name


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run of all tests of the console whose pages have not called each operation for operators.

    Changes must have been made at both layouts of the pages.
    """
    config = session.config
    selects = config.option.keyword or any("::" in each for each in config.args)
    if hasattr(config, "workerinput") or exitstatus or selects:
        return
    if faults := USED.faults():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        reporter.write_line("\n".join(["", *faults]), red=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _RUN in config.stash:
        config.stash[_RUN].close()
    if USED.file is not None and not hasattr(config, "workerinput"):
        rmtree(USED.file.parent)


def _engines(config: pytest.Config) -> str:
    """Return the URL of the local engines. Starts them at the first call."""
    shared = getattr(config, "workerinput", {}).get("engines")
    if shared:
        return shared
    if _ENGINES not in config.stash:
        config.stash[_RUN] = ExitStack()
        config.stash[_ENGINES] = config.stash[_RUN].enter_context(local_engines())
    return config.stash[_ENGINES]


@pytest.fixture(scope="session")
def local_vendors(request: pytest.FixtureRequest) -> str:
    return _engines(request.config)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_FOLDER):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    """Record that a test failed, for the fixtures that it has used."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def microphone(local_vendors: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WAV file in which `SPOKEN` is spoken."""
    return await spoken(local_vendors, SPOKEN, tmp_path_factory.mktemp("microphone") / "spoken.wav")


async def spoken(local_vendors: str, text: str, path: Path) -> Path:
    """Write a WAV file in which piper, the clearest local voice, speaks `text`."""
    body = {"model": "piper", "input": text, "response_format": "pcm"}
    async with ClientSession() as http, http.post(f"{local_vendors}/audio/speech", json=body) as response:
        assert response.status == 200, await response.text()
        sample_rate = int(response.headers["X-Sample-Rate"])
        pcm = await response.read()
    pcm = bytes(2 * int(sample_rate * _LEADING_SILENCE_S)) + pcm + bytes(2 * int(sample_rate * _TRAILING_SILENCE_S))
    await asyncio.to_thread(path.write_bytes, wav_header(sample_rate, data_bytes=len(pcm)) + pcm)
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(microphone: Path) -> AsyncIterator[Browser]:
    async with running_chromium(microphone) as browser:
        yield browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def settings(
    databases: Databases, local_vendors: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Settings]:
    """Settings of the server that all tests share. Each test has its own user."""
    async with databases.new() as database_url:
        yield Settings(
            database_url=database_url,
            redis_url=databases.stores.redis_url,
            redis_prefix=f"test-{uuid4().hex}:",
            master_key=SecretStr(MASTER_KEY),
            admin_token=SecretStr(ADMIN_TOKEN),
            env="development",
            data_dir=tmp_path_factory.mktemp("browser") / "data",
            local_url=local_vendors,
            drain_timeout_s=3,
        )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(settings: Settings) -> AsyncIterator[Server]:
    async with another_server(settings) as running:
        configs = running.services.configs
        await seed(configs, {"PARLEY_SERVER_KEY": SERVER_KEY})
        # Each test logs in a new user from the same address.
        raised_limits = {"rates": {"signup": {"count": 1_000, "per_s": 1}}}
        await configs.put("default", "limits", "default", raised_limits, author="test", origin=COMMAND)
        yield running


@pytest.fixture
def _nothing_left_behind() -> None:
    """Disable the check for remaining tasks, because server and browser stay open."""


@pytest_asyncio.fixture(loop_scope="session")
async def vendor() -> AsyncIterator[Vendor]:
    async with running_vendor() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def controlled_vendor() -> AsyncIterator[ControlledVendor]:
    async with running_controlled_vendor() as running:
        yield running


Put = Callable[..., Awaitable[None]]


@pytest_asyncio.fixture(loop_scope="session")
async def put(server: Server) -> AsyncIterator[Put]:
    """Returns a function that creates a config for this test: `await put("conversation", "name", {...})`."""
    configs = server.services.configs
    made: dict[ConfigKey, None] = {}

    async def make(kind: str, name: str, value: dict[str, Any], *, app_id: str = "default") -> None:
        await configs.put(app_id, kind, name, value, author="test", origin=COMMAND)
        made[ConfigKey(app_id, kind, name)] = None

    yield make
    for key in reversed(made):
        await configs.delete(key, author="test", origin=COMMAND)


@pytest_asyncio.fixture(loop_scope="session")
async def account(put: Put, vendor: Vendor) -> str:
    """A new account at the vendor. Each test has its own, because the server remembers failures of accounts."""
    name = f"vendor-{uuid4().hex}"
    await put("vendor_accounts", name, {"platform": "vendor_b_llm", "base_url": vendor.url})
    return name


@pytest.fixture
def fixed_strategy(put: Put, account: str) -> Callable[..., Awaitable[str]]:
    """Returns a function that creates a strategy with a fixed answer: `await fixed_strategy("Hello")`."""

    async def make(text: str, **fields: Any) -> str:
        await put("conversation", "fixed", {"chat": {"account": account, "model": f"say:{text}"}, **fields})
        return "fixed"

    return make


@pytest_asyncio.fixture(loop_scope="session")
async def make_controlled_strategy(put: Put, controlled_vendor: ControlledVendor) -> Callable[..., Awaitable[str]]:
    """Returns a function that creates a strategy whose answers are sent by `controlled_vendor.send()`."""
    name = f"controlled-{uuid4().hex}"
    await put("vendor_accounts", name, {"platform": "vendor_b_llm", "base_url": controlled_vendor.url})

    async def make(**fields: Any) -> str:
        await put("conversation", "controlled", {"chat": {"account": name}, **fields})
        return "controlled"

    return make


@pytest_asyncio.fixture(loop_scope="session")
async def controlled_strategy(
    make_controlled_strategy: Callable[..., Awaitable[str]], duration_recognition: str
) -> str:
    """A strategy of `controlled_vendor` without a voice. The transcript is the duration of the user's audio."""
    return await make_controlled_strategy(recognition=duration_recognition)


@pytest_asyncio.fixture(loop_scope="session")
async def duration_recognition(put: Put, controlled_vendor: ControlledVendor) -> str:
    """Recognition whose transcript is the duration of the audio, and another, `silent`, that recognizes nothing."""
    name = f"duration-{uuid4().hex}"
    await put("vendor_accounts", name, {"platform": "local_audio", "base_url": controlled_vendor.url})
    for model in ("duration", "silent"):
        await put("recognition", model, {"account": name, "model": model})
    return "duration"


Visit = Callable[..., Awaitable[TalkPage]]


@pytest.fixture
def page_faults() -> Iterator[PageFaults]:
    """Fails the test if one of its pages logs an error or sends a request to another host."""
    faults = PageFaults()
    yield faults
    faults.verify()


@pytest_asyncio.fixture(loop_scope="session")
async def visit(
    request: pytest.FixtureRequest, chromium: Browser, server: Server, page_faults: PageFaults
) -> AsyncIterator[Visit]:
    """Returns a function that opens a browser context: `await visit(permissions=[])`.

    Keeps pictures of the pages of a test that failed.
    """
    contexts: list[BrowserContext] = []

    async def open_context(at: Server = server, **options: Any) -> TalkPage:
        context = await chromium.new_context(**{"permissions": ["microphone"], "locale": "en-US", **options})
        contexts.append(context)
        page_faults.watch(context, urlsplit(at.url).netloc)
        await context.add_init_script(path=_FOLDER / "watch.js")
        talk = TalkPage(await context.new_page(), at)
        talk.watch()
        return talk

    yield open_context
    for number, context in enumerate(contexts):
        if request.node.stash.get(_FAILED, False):
            for page in context.pages:
                await keep_picture(page, f"failed-{_file_name(request.node.name)}-{number}")
        await context.close()


def _file_name(test: str) -> str:
    return re.sub(r"\W+", "-", test.removeprefix("test_")).strip("-")


@pytest_asyncio.fixture(loop_scope="session")
async def talk(visit: Visit) -> TalkPage:
    """A browser context with a microphone, in which the page is not open yet."""
    return await visit()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox_server(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The server of the accounts page."""
    async with accounts_server(databases, tmp_path_factory.mktemp("accounts")) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_accounts(chromium: Browser, sandbox_server: Server) -> AsyncIterator[AccountsPage]:
    async with accounts_page(chromium, sandbox_server) as opened:
        yield opened


@pytest.fixture
def accounts(shared_accounts: AccountsPage) -> Iterator[AccountsPage]:
    """The accounts page, which all tests share. Fails the test if it logs an error that is not expected."""
    faults = shared_accounts.faults
    for found in (faults.errors, faults.expected, faults.foreign_requests):
        found.clear()
    yield shared_accounts
    faults.verify()
