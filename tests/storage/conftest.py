"""Fixtures of this folder."""

from collections.abc import AsyncIterator

import pytest

from app.services import Services
from app.settings import Settings
from storage.configs.store import ConfigStore
from storage.conversations.turns import TurnWriter
from storage.operators.audit import COMMAND
from tests.running.config_stores import store_of


@pytest.fixture
async def configs(settings: Settings) -> AsyncIterator[ConfigStore]:
    async with store_of(settings) as store:
        await store.put("default", "apps", "default", {}, author="seed", origin=COMMAND)
        yield store


@pytest.fixture
def turns(services: Services) -> TurnWriter:
    return services.turns
