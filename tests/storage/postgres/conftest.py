"""A database without tables."""

import secrets
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import pytest

from app.settings import Settings


@pytest.fixture
async def empty(settings: Settings) -> AsyncIterator[str]:
    """The URL of an empty database."""
    name = f"empty_{secrets.token_hex(6)}"
    conn = await asyncpg.connect(settings.direct_url)
    await conn.execute(f"create database {name} template template0")
    yield urlsplit(settings.direct_url)._replace(path=f"/{name}").geturl()
    await conn.execute(f"drop database {name} with (force)")
    await conn.close()
