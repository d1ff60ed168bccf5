"""For how long jobs have waited since they were stored, whether or not attempts at them have failed meanwhile."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from storage.postgres.connection import Connection


class Waiting(NamedTuple):
    jobs: int = 0
    oldest_s: float = 0.0
    """Seconds since the oldest of these jobs was stored."""


_WAITING = """
select task_name, count(*) as count, extract(epoch from now() - min(
           (select min(at) from procrastinate_events where job_id = job.id)))::float8 as oldest_s
from procrastinate_jobs job where status in ('todo', 'doing') and task_name = any($1) group by task_name
"""


async def waiting(conn: Connection, tasks: Collection[str]) -> Mapping[str, Waiting]:
    """Return what waits of each of these kinds of jobs. Held jobs do not wait."""
    found = dict.fromkeys(tasks, Waiting())
    for row in await conn.fetch(_WAITING, list(tasks)):
        found[row["task_name"]] = Waiting(row["count"], max(0.0, row["oldest_s"] or 0.0))
    return found
