"""A client of ours, and a vendor to ask."""

from collections.abc import AsyncIterator

import pytest

from tests.vendors.upstream import Upstream, running_upstream
from vendors.sandbox.server import Running, listening
from vendors.transport import VendorHttp, open_vendor_http


@pytest.fixture
async def http() -> AsyncIterator[VendorHttp]:
    async with open_vendor_http() as opened:
        yield opened


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture
async def sandbox() -> AsyncIterator[Running]:
    """All vendors of the sandbox on a port of this test."""
    async with listening() as running:
        yield running
