"""Fixtures of the tests of the Python client."""

from collections.abc import AsyncIterator

import pytest

from parley_client import Backoff, ParleyClient
from tests.clients.cases import SIGN_KEY
from tests.running.servers import Server

PROMPT = Backoff(first_s=0.01, longest_s=0.05)
"""Tests need not wait as long as clients, which share a server with many others."""


@pytest.fixture
async def client(server: Server) -> AsyncIterator[ParleyClient]:
    """A client whose user is signed in."""
    async with ParleyClient(server.url, sign_key=SIGN_KEY, backoff=PROMPT) as opened:
        await opened.sign_in("device", {"id": "a device of the tests"})
        yield opened
