"""What the processes of a soak hold, read every few seconds: memory, descriptors, connections, streams."""

import asyncio
import csv
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import median

import asyncpg
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from bench.machine import Spent
from bench.soak.stand import Stand

_ANSWERS_WITHIN_S = 1.5
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment. Bytes are proportional set sizes (PSS) unless the name says otherwise; -1: unknown."""

    at_s: float
    children: int
    """Processes of the server, also those that drain."""
    children_bytes: int
    """Of the newest processes, as many as are configured: without those that drain."""
    children_rss_bytes: int
    draining_bytes: int
    parent_bytes: int
    lone_bytes: int
    """Of the process that is never replaced."""
    descriptors: int
    """Of the newest processes."""
    threads: int
    server_cpu_s: float
    generator_cpu_s: float
    valkey_bytes: int
    """What Valkey says it uses."""
    postgres_connections: int
    live: int
    """Streams that callers read."""
    ended: int
    events: int


@dataclass(slots=True)
class Sampler:
    """Reads everything once; a store that does not answer in time is left out."""

    stand: Stand
    counts: Callable[[], tuple[int, int, int]]
    """Streams that live, streams that have ended, events."""
    _spent_before_s: float = field(default_factory=time.process_time)

    async def sample(self, at_s: float) -> Sample:
        newest = self.stand.children()[-self.stand.processes :]
        older = self.stand.children()[: -self.stand.processes]
        valkey_bytes, connections = await asyncio.gather(self._valkey_bytes(), self._connections())
        live, ended, events = self.counts()
        held = [memory(pid) for pid in newest]
        return Sample(
            at_s=round(at_s, 1),
            children=len(newest) + len(older),
            children_bytes=sum(pss for pss, _ in held),
            children_rss_bytes=sum(rss for _, rss in held),
            draining_bytes=sum(memory(pid)[0] for pid in older),
            parent_bytes=memory(self.stand.parent.pid)[0],
            lone_bytes=memory(self.stand.lone.pid)[0],
            descriptors=sum(_count(pid, "fd") for pid in newest),
            threads=sum(_count(pid, "task") for pid in newest),
            server_cpu_s=round(Spent.of([self.stand.parent.pid, self.stand.lone.pid]).cpu_s, 2),
            generator_cpu_s=round(time.process_time() - self._spent_before_s, 2),
            valkey_bytes=valkey_bytes,
            postgres_connections=connections,
            live=live,
            ended=ended,
            events=events,
        )

    async def _valkey_bytes(self) -> int:
        url = self.stand.stores.redis_url
        try:
            async with (
                asyncio.timeout(_ANSWERS_WITHIN_S),
                Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client,
            ):
                return int((await client.info("memory"))["used_memory"])
        except (OSError, TimeoutError, RedisError):
            return -1

    async def _connections(self) -> int:
        query = "select count(*) from pg_stat_activity where backend_type = 'client backend'"
        try:
            conn = await asyncpg.connect(self.stand.stores.database_url, timeout=_ANSWERS_WITHIN_S)
            try:
                return int(await conn.fetchval(query, timeout=_ANSWERS_WITHIN_S)) - 1
            finally:
                conn.terminate()
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return -1


def memory(pid: int) -> tuple[int, int]:
    """Proportional and resident set size of a process, in bytes; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0, 0
    told = {line.split(":")[0]: int(line.split()[1]) * _KIB for line in lines if line.endswith(" kB")}
    return told.get("Pss", 0), told.get("Rss", 0)


def _count(pid: int, what: str) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/{what}").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0


def write_csv(path: Path, samples: list[Sample]) -> None:
    with path.open("w", newline="") as file:
        rows = csv.DictWriter(file, [one.name for one in fields(Sample)])
        rows.writeheader()
        rows.writerows(asdict(sample) for sample in samples)


_MEASURED = (
    *("children_bytes", "parent_bytes", "lone_bytes"),
    *("descriptors", "valkey_bytes", "postgres_connections"),
)


@dataclass(frozen=True, slots=True)
class Window:
    """Medians of the samples of that time."""

    begin_s: float
    end_s: float
    children_bytes: float
    parent_bytes: float
    lone_bytes: float
    descriptors: float
    valkey_bytes: float
    postgres_connections: float


def windows(samples: list[Sample], *, total_s: float, every_s: float, lasting_s: float) -> list[Window]:
    """The last `lasting_s` of every period of `every_s`, up to `total_s`.

    SIGHUP replaces the children at the end of each period, so that in all windows they are equally old: what
    differs between two windows is not the warming up of a new process.
    """
    found = []
    for number in range(1, int(total_s / every_s + 1e-9) + 1):
        end_s = number * every_s
        inside = [sample for sample in samples if end_s - lasting_s <= sample.at_s < end_s]
        if not inside:
            continue
        known = {name: [value for sample in inside if (value := getattr(sample, name)) >= 0] for name in _MEASURED}
        found.append(Window(end_s - lasting_s, end_s, **{name: median(of or [-1]) for name, of in known.items()}))
    return found
