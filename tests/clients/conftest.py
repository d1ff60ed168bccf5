"""Fixtures of the tests of both clients: an app that requires signatures, as in production, and its strategies."""

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import strategy, vendor
from tests.clients.cases import SIGN_KEY
from tests.running.servers import SERVER_KEY, Server

__all__ = ["server", "strategy", "vendor"]

AUTH = {
    "require_sign": True,
    "require_nonce": True,
    "sign_keys": [{"id": "tests", "key": SIGN_KEY}],
    "server_keys": [{"kid": "development", "alg": "HS256", "secret": SERVER_KEY}],
}


@pytest.fixture
async def server(shared_server: Server) -> Server:
    await configure(shared_server, "auth", AUTH)
    return shared_server


async def configure(server: Server, kind: str, value: object, name: str = "default") -> None:
    await server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)
