"""The undocumented behaviour of asyncpg's pool that `storage/postgres/` depends on."""

from contextlib import suppress

import asyncpg
import pytest

from tests.libraries.installed import version_fault
from tests.running.servers import Stores


async def _no_reset(connection: object) -> None:
    pass


def test_the_version_is_in_the_range_that_was_tested() -> None:
    assert version_fault("asyncpg") is None


async def test_a_lost_or_reclaimed_connection_is_closed(stores: Stores) -> None:
    async with asyncpg.create_pool(stores.database_url, min_size=1, max_size=1, reset=_no_reset) as pool:
        lost = await pool.acquire()
        assert lost.is_closed() is False
        lost.terminate()
        with suppress(asyncpg.InterfaceError):  # Raised if the pool has taken it back.
            assert lost.is_closed(), (
                "a terminated connection of asyncpg says that it is open: see storage/postgres/pool.py"
            )
        await pool.release(lost, timeout=1)
        returned = await pool.acquire()
        await pool.release(returned, timeout=1)
        with pytest.raises(asyncpg.InterfaceError):
            returned.is_closed()


async def test_a_connection_keeps_its_session_when_it_goes_back_to_the_pool(stores: Stores) -> None:
    async with asyncpg.create_pool(stores.database_url, min_size=1, max_size=1, reset=_no_reset) as pool:
        async with pool.acquire() as conn:
            await conn.execute("set application_name = 'kept'")
        async with pool.acquire() as conn:
            name = await conn.fetchval("show application_name")

    assert name == "kept", (
        "asyncpg resets connections although `reset` is given: storage/postgres/database.py avoids this"
    )
