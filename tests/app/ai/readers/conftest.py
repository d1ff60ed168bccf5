"""Fixtures of this folder."""

from collections.abc import AsyncIterator

import pytest

from app.settings import Settings
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.dying import Dying, another_process


@pytest.fixture
async def dying(talk: Talk, settings: Settings) -> AsyncIterator[Dying]:
    async with another_process(talk, settings) as process:
        yield process
