"""Rows of server processes that are running. With them, a flushed Valkey does not make processes look dead."""

from collections.abc import Collection

from storage.postgres.database import Connection

_REPORT = """
with forgotten as (delete from processes where seen_at < now() - make_interval(secs => $2) and process <> $1)
insert into processes (process) values ($1) on conflict (process) do update set seen_at = now()
"""


async def report(conn: Connection, process: str, *, forget_after_s: float) -> None:
    """Record that `process` is running, and delete rows that were not updated for `forget_after_s`."""
    await conn.execute(_REPORT, process, forget_after_s)


async def remove(conn: Connection, process: str) -> None:
    """Record that `process` has ended."""
    await conn.execute("delete from processes where process = $1", process)


async def all_alive(conn: Connection, *, void_after_s: float) -> list[str]:
    """Return all processes that have reported within the last `void_after_s`."""
    rows = await conn.fetch(
        "select process from processes where seen_at > now() - make_interval(secs => $1)", void_after_s
    )
    return [process for (process,) in rows]


_SILENT = """
select process from processes where seen_at < now() - make_interval(secs => $1) order by seen_at desc limit $2
"""


async def silent(conn: Connection, *, after_s: float, limit: int) -> list[str]:
    """Return processes that have neither ended nor reported for `after_s`, the last one first.

    They have been killed, hang, or do not reach this database. An hour later they are forgotten.
    """
    return [process for (process,) in await conn.fetch(_SILENT, after_s, limit)]


_ALIVE = """
select process from processes where process = any($1) and seen_at > now() - make_interval(secs => $2)
"""


async def alive(conn: Connection, processes: Collection[str], *, void_after_s: float) -> frozenset[str]:
    """Return those of `processes` that have reported within the last `void_after_s`."""
    rows = await conn.fetch(_ALIVE, list(processes), void_after_s)
    return frozenset(process for (process,) in rows)
