"""Fixtures of the tests of the example apps: the packed clients."""

from pathlib import Path

import pytest

from tests.clients.packages import build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))
