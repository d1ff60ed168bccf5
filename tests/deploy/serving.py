"""Runs `python -m app serve` with several processes on the port of a test."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.settings import Settings
from tests.deploy.commands import Command, command
from tests.environment import core_packages
from tests.running.object_stores import objects_env
from tests.running.poolers import database_env

__all__ = ["server_env", "serving", "settings"]


def server_env(settings: Settings, **more: str) -> dict[str, str]:
    """Return the environment of a server with two processes on the stores of the test. `more` overrides it."""
    return {
        **core_packages(),
        "PARLEY_ENV": "development",
        **database_env(settings),
        "REDIS_URL": settings.redis_url,
        "PARLEY_REDIS_PREFIX": settings.redis_prefix,
        "PARLEY_MASTER_KEY": settings.master_key.get_secret_value(),
        "PARLEY_ADMIN_TOKEN": settings.admin_token.get_secret_value(),
        **objects_env(settings),
        "PARLEY_PROCESSES": "2",
        "PARLEY_DRAIN_TIMEOUT_S": "3",
        "PORT": str(settings.port),
        **more,
    }


@asynccontextmanager
async def serving(settings: Settings, *, fresh: bool = False, **more: str) -> AsyncIterator[Command]:
    """Run a server with two processes. `more` overrides its environment. `fresh`: see `command`."""
    async with command("app", "serve", fresh=fresh, **server_env(settings, **more)) as parent:
        yield parent


@pytest.fixture
def settings(settings: Settings, listener: socket.socket) -> Settings:
    """Settings whose port is free, because the listener of the test is closed."""
    listener.close()
    return settings
