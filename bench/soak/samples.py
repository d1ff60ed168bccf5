"""Periodic samples of a soak's processes: memory, descriptors, connections, streams."""

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

from bench.machine import Usage
from bench.soak.testbed import SoakTestbed

_RESPONSE_TIMEOUT_S = 1.5
_KIB = 1024
_MEDIANS = (
    "children_bytes",
    "parent_bytes",
    "long_lived_bytes",
    "descriptors",
    "valkey_bytes",
    "postgres_connections",
)
"""The values of a sample that a window summarizes."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample. Bytes of processes are anonymous memory unless the name says otherwise; -1 means unknown."""

    at_s: float
    children: int
    """Number of server processes, including those that drain."""
    children_bytes: int
    """Memory of the newest processes, as many as are configured, without those that drain."""
    children_rss_bytes: int
    draining_bytes: int
    parent_bytes: int
    long_lived_bytes: int
    """Memory of the process that is never replaced."""
    descriptors: int
    """Open descriptors of the newest processes."""
    threads: int
    server_cpu_s: float
    generator_cpu_s: float
    valkey_bytes: int
    """`used_memory` as reported by Valkey."""
    postgres_connections: int
    live: int
    """Number of streams that callers are reading."""
    ended: int
    events: int


@dataclass(slots=True)
class Sampler:
    """Takes samples. The values of a store that does not respond in time are -1."""

    testbed: SoakTestbed
    counts: Callable[[], tuple[int, int, int]]
    """Returns the numbers of live streams, ended streams and events."""
    _spent_before_s: float = field(default_factory=time.process_time)

    async def sample(self, at_s: float) -> Sample:
        newest = self.testbed.children()[-self.testbed.processes :]
        older = self.testbed.children()[: -self.testbed.processes]
        valkey_bytes, connections = await asyncio.gather(self._valkey_bytes(), self._connections())
        live, ended, events = self.counts()
        sizes = [memory(pid) for pid in newest]
        return Sample(
            at_s=round(at_s, 1),
            children=len(newest) + len(older),
            children_bytes=sum(anonymous for anonymous, _ in sizes),
            children_rss_bytes=sum(rss for _, rss in sizes),
            draining_bytes=sum(memory(pid)[0] for pid in older),
            parent_bytes=memory(self.testbed.parent.pid)[0],
            long_lived_bytes=memory(self.testbed.long_lived.pid)[0],
            descriptors=sum(_count(pid, "fd") for pid in newest),
            threads=sum(_count(pid, "task") for pid in newest),
            server_cpu_s=round(Usage.of([self.testbed.parent.pid, self.testbed.long_lived.pid]).cpu_s, 2),
            generator_cpu_s=round(time.process_time() - self._spent_before_s, 2),
            valkey_bytes=valkey_bytes,
            postgres_connections=connections,
            live=live,
            ended=ended,
            events=events,
        )

    async def _valkey_bytes(self) -> int:
        url = self.testbed.stores.redis_url
        try:
            async with (
                asyncio.timeout(_RESPONSE_TIMEOUT_S),
                Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client,
            ):
                return int((await client.info("memory"))["used_memory"])
        except (OSError, TimeoutError, RedisError):
            return -1

    async def _connections(self) -> int:
        query = "select count(*) from pg_stat_activity where backend_type = 'client backend'"
        try:
            conn = await asyncpg.connect(self.testbed.stores.database_url, timeout=_RESPONSE_TIMEOUT_S)
            try:
                return int(await conn.fetchval(query, timeout=_RESPONSE_TIMEOUT_S)) - 1
            finally:
                conn.terminate()
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return -1


def memory(pid: int) -> tuple[int, int]:
    """Return the anonymous memory and the resident set size of a process in bytes; 0 if it has ended.

    Anonymous memory leaves out mapped files, whose share (PSS) depends on which other processes run Python.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0, 0
    sizes = {line.split(":")[0]: int(line.split()[1]) * _KIB for line in lines if line.endswith(" kB")}
    return sizes.get("Pss_Anon", 0), sizes.get("Rss", 0)


def _count(pid: int, folder: str) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/{folder}").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0


def write_csv(path: Path, samples: list[Sample]) -> None:
    with path.open("w", newline="") as file:
        rows = csv.DictWriter(file, [column.name for column in fields(Sample)])
        rows.writeheader()
        rows.writerows(asdict(sample) for sample in samples)


@dataclass(frozen=True, slots=True)
class Window:
    """The medians of the samples in a span of time."""

    begin_s: float
    end_s: float
    children_bytes: float
    parent_bytes: float
    long_lived_bytes: float
    descriptors: float
    valkey_bytes: float
    postgres_connections: float


def windows(samples: list[Sample], *, total_s: float, every_s: float) -> list[Window]:
    """Return a window for each `every_s` up to `total_s`."""
    result = []
    for number in range(int(total_s / every_s + 1e-9)):
        begin_s, end_s = number * every_s, (number + 1) * every_s
        samples_in_window = [sample for sample in samples if begin_s <= sample.at_s < end_s]
        if not samples_in_window:
            continue
        known = {
            name: [value for sample in samples_in_window if (value := getattr(sample, name)) >= 0]
            for name in _MEDIANS
        }
        result.append(Window(begin_s, end_s, **{name: median(values or [-1]) for name, values in known.items()}))
    return result
