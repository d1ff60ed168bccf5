"""The servers of the tests notice what their code leaves on connections to PostgreSQL."""

from pathlib import Path

import pytest

from tests.running.servers import Databases, new_server


async def test_a_setting_or_a_lock_that_a_connection_keeps_fails_the_tests_of_its_server(
    databases: Databases, tmp_path: Path
) -> None:
    async def leave(statements: str) -> None:
        running = new_server(databases, tmp_path, seeded=False)
        async with running as server, server.services.database.connection() as conn:
            await conn.execute(statements)

    with pytest.raises(AssertionError, match="keep setting statement_timeout, advisory lock"):
        await leave("set statement_timeout = '1min'; select pg_advisory_lock(1)")
