"""Fixture: plain HTTP requests to the sandbox."""

from collections.abc import AsyncIterator

import pytest

from tests.vendors.sandbox.requests import SandboxClient, sandbox_client
from vendors.sandbox.server import Running


@pytest.fixture
async def ask(sandbox: Running) -> AsyncIterator[SandboxClient]:
    async with sandbox_client(sandbox) as open_:
        yield open_
