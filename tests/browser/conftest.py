"""A page in a real browser, before a server whose vendors are the test's and this machine's own engines.

All runs in one loop for the session, since the browser lives through all tests.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
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
from storage.audit import COMMAND
from storage.config_rows import ConfigKey
from streams.audio import wav_header
from tests.app.ai.two_servers import another_server
from tests.browser.chromium import running_chromium
from tests.browser.guard import Guard
from tests.browser.talking import Talking
from tests.browser.teller import Teller, running_teller
from tests.servers import ADMIN_TOKEN, MASTER_KEY, SERVER_KEY, Databases, Server, local_engines
from tests.vendor import Vendor, running_vendor

SPOKEN = "Good morning. What is the capital of Japan?"
"""What the microphone hears."""
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
_FOLDER = Path(__file__).parent
_BEFORE_S = 0.8
"""Of silence, in which the page gets ready to listen."""
_AFTER_S = 0.3
"""Of silence too: Chromium goes on with what the file ends with."""
_PATIENCE_MS = 30_000

_RUN = pytest.StashKey[ExitStack]()
_ENGINES = pytest.StashKey[str]()

expect.set_options(timeout=_PATIENCE_MS)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Let the workers of xdist share the engines of the process that started them: each loads its models once."""
    node.workerinput["engines"] = _engines(node.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _RUN in config.stash:
        config.stash[_RUN].close()


def _engines(config: pytest.Config) -> str:
    """The URL of the local engines, started when it is first asked for."""
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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def microphone(local_vendors: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WAV file of `SPOKEN`, by the voice of this machine that is the easiest to understand."""
    asked = {"model": "piper", "input": SPOKEN, "response_format": "pcm"}
    async with ClientSession() as http, http.post(f"{local_vendors}/audio/speech", json=asked) as response:
        assert response.status == 200, await response.text()
        sample_rate = int(response.headers["X-Sample-Rate"])
        pcm = await response.read()
    pcm = bytes(2 * int(sample_rate * _BEFORE_S)) + pcm + bytes(2 * int(sample_rate * _AFTER_S))
    path = tmp_path_factory.mktemp("microphone") / "spoken.wav"
    path.write_bytes(wav_header(sample_rate, data_bytes=len(pcm)) + pcm)
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(microphone: Path) -> AsyncIterator[Browser]:
    async with running_chromium(microphone) as browser:
        yield browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def settings(
    databases: Databases, local_vendors: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Settings]:
    """Of a server that all tests share: its users differ, and it must not be made anew for each."""
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
        many = {"rates": {"signup": {"count": 1_000, "per_s": 1}}}  # each test is a new user of the same address
        await configs.put("default", "limits", "default", many, author="test", origin=COMMAND)
        yield running


@pytest.fixture
def _no_task_left() -> None:
    """Nothing to look at: server and browser live on."""


@pytest_asyncio.fixture(loop_scope="session")
async def vendor() -> AsyncIterator[Vendor]:
    async with running_vendor() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def teller() -> AsyncIterator[Teller]:
    async with running_teller() as running:
        yield running


Put = Callable[[str, str, dict[str, Any]], Awaitable[None]]


@pytest_asyncio.fixture(loop_scope="session")
async def put(server: Server) -> AsyncIterator[Put]:
    """Makes a config for the time of the test: `await put("conversation", "name", {...})`."""
    configs = server.services.configs
    made: dict[ConfigKey, None] = {}

    async def make(kind: str, name: str, value: dict[str, Any]) -> None:
        await configs.put("default", kind, name, value, author="test", origin=COMMAND)
        made[ConfigKey("default", kind, name)] = None

    yield make
    for key in reversed(made):
        await configs.delete(key, author="test", origin=COMMAND)


@pytest_asyncio.fixture(loop_scope="session")
async def account(put: Put, vendor: Vendor) -> str:
    """The account at the vendor of the test; of its own, since what is known of accounts is kept."""
    name = f"vendor-{uuid4().hex}"
    await put("vendor_accounts", name, {"platform": "vendor_b_llm", "base_url": vendor.url})
    return name


@pytest.fixture
def say(put: Put, account: str) -> Callable[..., Awaitable[str]]:
    """Makes a strategy that answers with a text: `await say("Hello", speech="local")`, and gives its name."""

    async def make(text: str, **fields: Any) -> str:
        await put("conversation", "sayer", {"chat": {"account": account, "model": f"say:{text}"}, **fields})
        return "sayer"

    return make


@pytest_asyncio.fixture(loop_scope="session")
async def telling(put: Put, teller: Teller) -> Callable[..., Awaitable[str]]:
    """Makes a strategy whose words the test tells to `teller`: `await telling(recognition="local")`."""
    name = f"teller-{uuid4().hex}"
    await put("vendor_accounts", name, {"platform": "vendor_b_llm", "base_url": teller.url})

    async def make(**fields: Any) -> str:
        await put("conversation", "told", {"chat": {"account": name}, **fields})
        return "told"

    return make


@pytest_asyncio.fixture(loop_scope="session")
async def told(telling: Callable[..., Awaitable[str]], ear: str) -> str:
    """Such a strategy, without a voice, whose ears tell how many seconds of sound they got."""
    return await telling(recognition=ear)


@pytest_asyncio.fixture(loop_scope="session")
async def ear(put: Put, teller: Teller) -> str:
    """Ears that tell how many seconds of sound they got; as `deaf` they hear nothing in it."""
    name = f"ear-{uuid4().hex}"
    await put("vendor_accounts", name, {"platform": "local_audio", "base_url": teller.url})
    for model in ("ear", "deaf"):
        await put("recognition", model, {"account": name, "model": model})
    return "ear"


Visit = Callable[..., Awaitable[Talking]]


@pytest.fixture
def guard() -> Iterator[Guard]:
    """What no page of this test may do."""
    watching = Guard()
    yield watching
    watching.verify()


@pytest_asyncio.fixture(loop_scope="session")
async def visit(
    request: pytest.FixtureRequest, chromium: Browser, server: Server, guard: Guard
) -> AsyncIterator[Visit]:
    """Lets somebody new come, with a browser of their own: `await visit(permissions=[])`. Pictures are kept."""
    contexts: list[BrowserContext] = []

    async def come(at: Server = server, **options: Any) -> Talking:
        context = await chromium.new_context(**{"permissions": ["microphone"], "locale": "en-US", **options})
        contexts.append(context)
        guard.watch(context, urlsplit(at.url).netloc)
        await context.add_init_script(path=_FOLDER / "watch.js")
        talking = Talking(await context.new_page(), at)
        talking.watch()
        return talking

    yield come
    name = re.sub(r"\W+", "-", request.node.name.removeprefix("test_")).strip("-")
    for number, context in enumerate(contexts):
        for page in context.pages:
            await page.screenshot(path=SCREENSHOTS / f"{name}{f'-{number}' if number else ''}.png", full_page=True)
        await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def talk(visit: Visit) -> Talking:
    """Somebody with a microphone, who has not yet opened the page."""
    return await visit()
