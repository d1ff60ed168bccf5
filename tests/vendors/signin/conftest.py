"""The sandbox whose sign-in providers the tests call."""

from collections.abc import AsyncIterator

import pytest

from vendors.sandbox.server import Running, listening


@pytest.fixture(scope="module")
async def shared_sandbox() -> AsyncIterator[Running]:
    async with listening() as running:
        yield running


@pytest.fixture
def sandbox(shared_sandbox: Running) -> Running:
    """The sandbox of the module, without calls and faults of earlier tests."""
    shared_sandbox.bill.clear()
    shared_sandbox.sandbox.switches.clear()
    return shared_sandbox
