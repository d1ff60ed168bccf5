"""What a URL of PostgreSQL leads to: a session of PostgreSQL, or a pooler that passes sessions on."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

import asyncpg

from storage.postgres.database import first_connection, map_errors
from storage.postgres.hosts import Hosts

_CONNECT_S = 5
_ANSWER_S = 5
_TRIES = 10
"""Other clients of a pooler may use the session in between."""
_SERVER = "select current_database() || ' since ' || pg_postmaster_start_time()"
_PID = "select pg_backend_pid()"


@dataclass(frozen=True, slots=True)
class Way:
    pooled: bool
    """Whether a pooler is in between."""
    shares_sessions: bool
    """Whether two connections use one session of PostgreSQL, each for a transaction."""
    server: str
    """A text that differs between servers and databases."""
    is_standby: bool


async def find_way(url: str, variable: str) -> Way:
    """Return where `url`, the value of `variable`, leads. Raises `StoreError`."""
    async with AsyncExitStack() as stack:
        with first_connection(url, variable):
            first, second = [await _connect(stack, url) for _ in range(2)]
        with map_errors():
            return Way(
                pooled=first.get_server_pid() != await first.fetchval(_PID),
                shares_sessions=any([await _share(first, second) for _ in range(_TRIES)]),
                server=await first.fetchval(_SERVER),
                is_standby=await first.fetchval("select pg_is_in_recovery()"),
            )


async def _connect(stack: AsyncExitStack, url: str) -> asyncpg.Connection:
    options = {"timeout": _CONNECT_S, "command_timeout": _ANSWER_S, "statement_cache_size": 0}
    conn = await Hosts(url).connect(**options)
    stack.callback(conn.terminate)
    return conn


async def _share(first: asyncpg.Connection, second: asyncpg.Connection) -> bool:
    """Return whether the second connection has got the session that the first has just used. It is then open."""
    used = await first.fetchval(_PID)
    async with second.transaction():
        return bool(await second.fetchval(_PID) == used)
