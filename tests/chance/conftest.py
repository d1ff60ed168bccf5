"""A suite of its own for each test."""

from pathlib import Path

import pytest

from tests.chance.suite import Suite


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)
