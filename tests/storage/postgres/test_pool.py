"""A pool loses no connection, gives each to one caller at a time, and replaces broken ones."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg
import pytest

from storage.postgres.database import Database, open_database
from streams.wire.errors import DatabaseUnavailable, StoreError, StoreUnavailable
from tests.connections import left_on
from tests.running.suspended import suspended
from tests.waiting import passes, until

MAX_CONNECTIONS = 3
QUERYING = """
    select count(*) from pg_stat_activity
    where datname = current_database() and state = 'active' and query = 'select pg_sleep(10)'
"""


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with open_database(database_url, max_size=MAX_CONNECTIONS) as opened:
        yield opened


@pytest.fixture
async def observer(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection outside of the pool."""
    conn = await asyncpg.connect(database_url)
    try:
        yield conn
    finally:
        await conn.close()


async def backend(database: Database) -> int:
    async with database.connection() as conn:
        pid: int = await conn.fetchval("select pg_backend_pid()")
        return pid


@asynccontextmanager
async def all_in_use(database: Database) -> AsyncIterator[asyncio.Event]:
    """Hold all connections until the yielded event is set, or until the block ends."""
    held, release = asyncio.Barrier(MAX_CONNECTIONS + 1), asyncio.Event()

    async def hold() -> None:
        async with database.connection():
            await held.wait()
            await release.wait()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(MAX_CONNECTIONS):
            tasks.create_task(hold())
        await held.wait()
        try:
            yield release
        finally:
            release.set()


async def all_can_be_used(database: Database) -> bool:
    """Return whether the maximum number of connections can be used at once."""
    together = asyncio.Barrier(MAX_CONNECTIONS)

    async def use() -> int:
        async with database.connection() as conn:
            await together.wait()
            pid: int = await conn.fetchval("select pg_backend_pid()")
            return pid

    async with asyncio.timeout(10):
        return len(set(await asyncio.gather(*(use() for _ in range(MAX_CONNECTIONS))))) == MAX_CONNECTIONS


async def test_the_next_caller_gets_the_same_connection(database: Database) -> None:
    assert len({await backend(database) for _ in range(5)}) == 1


async def test_pool_size_is_bounded_and_each_connection_has_one_user_at_a_time(database: Database) -> None:
    using: set[int] = set()
    seen: set[int] = set()

    async def use() -> None:
        async with database.connection() as conn:
            pid = await conn.fetchval("select pg_backend_pid()")
            assert pid not in using
            using.add(pid)
            await passes()  # Any other user of this connection would come now.
            using.discard(pid)
            seen.add(pid)

    await asyncio.gather(*(use() for _ in range(60)))
    assert len(seen) == MAX_CONNECTIONS


async def test_a_caller_that_waits_too_long_gets_database_unavailable(database_url: str) -> None:
    async with open_database(database_url, max_size=MAX_CONNECTIONS, acquire_timeout_s=1) as impatient:
        async with all_in_use(impatient):
            with pytest.raises(StoreUnavailable):
                await backend(impatient)
        assert await all_can_be_used(impatient)


async def test_a_caller_that_is_cancelled_while_waiting_or_querying_loses_no_connection(
    database: Database, observer: asyncpg.Connection
) -> None:
    async def all_query() -> bool:
        return await observer.fetchval(QUERYING) == MAX_CONNECTIONS

    async def asks() -> None:
        async with database.connection() as conn:
            await conn.fetchval("select pg_sleep(10)")

    for _ in range(3):
        async with asyncio.TaskGroup() as tasks:
            asking = [tasks.create_task(asks()) for _ in range(2 * MAX_CONNECTIONS)]
            await until(all_query)  # The other callers wait for a connection.
            for task in asking:
                task.cancel()
    assert await all_can_be_used(database)


async def test_a_caller_that_is_cancelled_while_its_backend_hangs_ends_cancelled(
    database: Database, observer: asyncpg.Connection
) -> None:
    async def asks() -> None:
        async with database.connection() as conn:
            await conn.fetchval("select pg_sleep(10)")

    async def backend_of_query() -> int | None:
        return await observer.fetchval(QUERYING.replace("count(*)", "pid"))

    asking = asyncio.create_task(asks())  # noqa: TID251 - the test needs its own error, not that of a group
    await until(backend_of_query)
    pid = await backend_of_query()
    with suspended(pid):  # It does not hear that its statement is cancelled.
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert await all_can_be_used(database)


async def test_connection_for_a_cancelled_caller_is_passed_to_the_next(database: Database) -> None:
    async with asyncio.TaskGroup() as tasks, all_in_use(database) as release:
        first, second = (tasks.create_task(backend(database)) for _ in range(2))
        await asyncio.sleep(0)
        release.set()
        await asyncio.sleep(0)
        first.cancel()
    assert await second
    assert await all_can_be_used(database)


async def test_terminated_connections_are_replaced(database: Database, observer: asyncpg.Connection) -> None:
    ended = await backend(database)
    assert await observer.fetchval("select pg_terminate_backend($1)", ended)
    pids = set()
    for _ in range(3):
        with suppress(StoreError):  # The first use finds that the connection is closed.
            pids.add(await backend(database))
    assert pids
    assert ended not in pids
    assert await all_can_be_used(database)


async def test_connections_to_a_server_that_is_read_only_are_replaced(
    database_url: str, observer: asyncpg.Connection
) -> None:
    """As after a failover: the address leads to another server, but connections to the former one remain."""
    name = await observer.fetchval("select current_database()")
    await observer.execute(
        f"create table lent (x int); alter database {name} set default_transaction_read_only = on"
    )

    async def write(database: Database) -> None:
        async with database.connection() as conn:
            await conn.execute("insert into lent values (1)")

    async with open_database(database_url, max_size=MAX_CONNECTIONS) as database:
        assert await all_can_be_used(database)
        async with database.connection() as held:
            await observer.execute(f"alter database {name} reset default_transaction_read_only")
            with pytest.raises(DatabaseUnavailable, match="read-only"):
                await write(database)
            await asyncio.gather(*(write(database) for _ in range(MAX_CONNECTIONS - 1)))
            assert await held.fetchval("show transaction_read_only") == "on"
        await asyncio.gather(*(write(database) for _ in range(MAX_CONNECTIONS)))
        assert await all_can_be_used(database)


async def test_an_error_in_a_transaction_rolls_it_back(database: Database) -> None:
    async def fail() -> None:
        async with database.transaction() as conn:
            await conn.execute("create table lent (x int)")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    async with database.connection() as conn:
        assert not conn.is_in_transaction()
        assert await conn.fetchval("select to_regclass('lent')") is None


@pytest.mark.parametrize(
    "statement",
    [
        "select pg_advisory_lock(7)",
        "set statement_timeout = 1000",
        "listen something",
        "prepare it as select 1",
    ],
)
async def test_the_check_of_all_tests_finds_state_left_on_a_connection(database: Database, statement: str) -> None:
    async with database.transaction() as conn:
        await conn.execute("set local lock_timeout = 1000; select pg_advisory_xact_lock(7)")
    async with database.connection() as conn:
        assert await left_on(conn) == []
        await conn.execute(statement)
    async with database.connection() as conn:
        assert len(await left_on(conn)) == 1
