"""Fixtures: HTTP clients for vendors, and a vendor to call."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.vendors.http.upstream import Upstream, running_upstream
from tests.vendors.speech.azure.sandbox_calls import ID
from vendors.http.client import open_vendor_http
from vendors.http.http1.client import Http1Client, open_http1
from vendors.http.transport import VendorHttp
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running, listening


@pytest.fixture
async def http() -> AsyncIterator[VendorHttp]:
    async with open_vendor_http() as opened:
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
