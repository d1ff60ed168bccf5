"""The sandbox's platforms, and a client of each."""

from collections.abc import AsyncIterator, Callable

import pytest
from pydantic import SecretStr

from tests.vendors.payments.paypal.calls import Merchant, merchant
from vendors.account import Account
from vendors.calls.gate import Gate, GatePolicy
from vendors.http.transport import VendorHttp
from vendors.payments.stripe.client import Stripe
from vendors.sandbox.server import Running, listening


@pytest.fixture
async def sandbox() -> AsyncIterator[Running]:
    """A sandbox whose platforms have no customers yet."""
    async with listening() as running:
        yield running


@pytest.fixture
async def shop(http: VendorHttp, sandbox: Running) -> AsyncIterator[Merchant]:
    """A merchant of PayPal without faults."""
    async with merchant(http, sandbox) as opened:
        yield opened


@pytest.fixture
def open_stripe(http: VendorHttp, sandbox: Running) -> Callable[..., Stripe]:
    """Opens our client for the sandbox. The key may name a fault."""

    def open_(key: str = "sandbox", policy: GatePolicy | None = None) -> Stripe:
        return Stripe(
            http,
            Account("Default", "cardpay", f"{sandbox.url}/stripe", SecretStr(key)),
            Gate("tests", policy or GatePolicy()),
        )

    return open_


@pytest.fixture
def stripe(open_stripe: Callable[..., Stripe]) -> Stripe:
    return open_stripe()
