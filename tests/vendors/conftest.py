"""Fixtures: HTTP clients for vendors, and a vendor to call."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.vendors.azure_sandbox_calls import ID
from tests.vendors.upstream import Upstream, running_upstream
from vendors.http1.client import Http1Client, open_http1
from vendors.http_client import open_vendor_http
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running, listening
from vendors.transport import VendorHttp

BOTH_CLIENTS = {
    *(
        "test_transport",
        "test_refusals",
        "test_push",
        "test_repeats",
        "test_gemini_sandbox",
        "test_azure_tts_faults",
        "test_azure_stt_faults",
    ),
}
"""Modules whose tests run with both HTTP clients. Others run only with our own."""
BOTH_IN_A_SOAK = {"test_openai_faults", "test_anthropic_sandbox", "test_google_sandbox", "test_elevenlabs_sandbox"}
"""Modules whose tests run with both HTTP clients in a soak."""
assert all(Path(__file__).with_name(f"{name}.py").exists() for name in BOTH_CLIENTS | BOTH_IN_A_SOAK), (
    "a module was renamed"
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "http" in metafunc.fixturenames:
        module = metafunc.module.__name__.rpartition(".")[2]
        second = [pytest.param("aiohttp", marks=[] if module in BOTH_CLIENTS else pytest.mark.soak)]
        clients = ["http1", *(second if module in BOTH_CLIENTS | BOTH_IN_A_SOAK else [])]
        metafunc.parametrize("http", clients, indirect=True)


@pytest.fixture
async def http(request: pytest.FixtureRequest) -> AsyncIterator[VendorHttp]:
    async with open_vendor_http(client=request.param) as opened:
        yield opened


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture(scope="session")
async def _shared_sandbox() -> AsyncIterator[Running]:
    async with listening() as running:
        yield running


@pytest.fixture
async def sandbox(_shared_sandbox: Running) -> AsyncIterator[Running]:
    """The sandbox with all vendors. It remembers nothing of earlier tests."""
    yield _shared_sandbox
    await _shared_sandbox.reset()


@pytest.fixture
async def http1() -> AsyncIterator[Http1Client]:
    async with open_http1(aiohttp.ThreadedResolver(), idle_s=60) as opened:
        yield opened


@pytest.fixture
async def azure_session(sandbox: Running) -> AsyncIterator[aiohttp.ClientSession]:
    """An HTTP session of the sandboxed Azure."""
    headers = {"Ocp-Apim-Subscription-Key": key_of(text="good morning"), "X-ConnectionId": ID}
    async with aiohttp.ClientSession(sandbox.url, headers=headers) as opened:
        yield opened
