"""Who asks the sandbox without a client of ours."""

from collections.abc import AsyncIterator

import pytest

from tests.vendors.sandbox.asking import Asking, asking
from vendors.sandbox.server import Running


@pytest.fixture
async def ask(sandbox: Running) -> AsyncIterator[Asking]:
    async with asking(sandbox) as open_:
        yield open_
