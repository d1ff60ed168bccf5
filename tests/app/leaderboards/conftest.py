"""Boards on the module's server."""

import pytest

from tests.app.leaderboards.boards import Boards
from tests.running.servers import Server


@pytest.fixture
def boards(shared_server: Server) -> Boards:
    return Boards(shared_server)
