"""A server of the module that receives its own emails."""

from collections.abc import AsyncIterator

import pytest

from tests.app.accounts.email.mailbox import Mailbox, open_mailbox
from tests.running.servers import Databases


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mailbox]:
    async with open_mailbox(databases, tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture
async def box(testbed: Mailbox) -> AsyncIterator[Mailbox]:
    """The mailbox of the module, in an app that verifies addresses and allows logins by code."""
    await testbed.configure(code_login=True, activation=True)
    yield testbed
    await testbed.server.services.clock.move("default", offset_s=0)
