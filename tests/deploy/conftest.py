"""A database for tests that start a deployment as an operator does."""

from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from deploy.stores import Stores


@pytest.fixture
async def empty_database(stores: Stores) -> AsyncIterator[str]:
    name = f"test_{uuid4().hex}"
    admin = await asyncpg.connect(stores.database_url)
    try:
        await admin.execute(f"create database {name} template template0")
        yield stores.database_url.replace("///postgres?", f"///{name}?")
        await admin.execute(f"drop database {name} with (force)")
    finally:
        await admin.close()
