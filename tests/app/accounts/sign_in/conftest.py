"""A server of the module behind a proxy, which reports the addresses of callers."""

from collections.abc import AsyncIterator

import pytest

from tests.app.accounts.sign_in.guessing import Calls
from tests.running.servers import Databases, Server, new_server


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    folder = tmp_path_factory.mktemp("data")
    async with new_server(databases, folder, trusted_proxies=("127.0.0.0/8",)) as server:
        yield server


@pytest.fixture
async def calls(testbed: Server) -> Calls:
    opened = Calls(testbed)
    await opened.limit()
    await opened.configure("email", mail_accounts=["inbox"], code_login=True)
    client, prefix = testbed.services.valkey.client, testbed.services.settings.redis_prefix
    if keys := [key async for key in client.scan_iter(f"{prefix}*rate*", count=10_000)]:
        await client.delete(*keys)
    return opened
