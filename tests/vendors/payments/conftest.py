"""Fixtures: a merchant of the sandbox's PayPal."""

from collections.abc import AsyncIterator

import pytest

from tests.vendors.payments.paypal.calls import Merchant, merchant
from vendors.http.transport import VendorHttp
from vendors.sandbox.server import Running


@pytest.fixture
async def shop(http: VendorHttp, sandbox: Running) -> AsyncIterator[Merchant]:
    """A merchant without faults."""
    async with merchant(http, sandbox) as opened:
        yield opened
