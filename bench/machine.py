"""Linux's counters of this machine: CPU time and memory of processes, busy time of cores."""

import asyncio
import os
import platform
import resource
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

_RAISED_NICENESS = -15


@dataclass(frozen=True, slots=True)
class Cores:
    """The cores of the target, and those of everything else: generator, vendor and stores."""

    target: frozenset[int]
    others: frozenset[int]

    @classmethod
    def split(cls) -> "Cores":
        """Give the first core of this process to the target and the rest to the others."""
        ours = frozenset(os.sched_getaffinity(0))
        first = frozenset({min(ours)})
        return cls(first, (ours - first) or first)

    @property
    def are_separate(self) -> bool:
        """Whether the target shares no core with the others."""
        return self.target.isdisjoint(self.others)


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time and resident memory of processes and all their descendants.

    The CPU time of descendants that have ended is included once their parent has noticed their end.
    """

    cpu_s: float = 0
    rss_bytes: int = 0
    processes: int = 0

    @classmethod
    def of(cls, pids: Iterable[int]) -> "Usage":
        usages = [_usage(pid) for root in pids for pid in family(root)]
        return cls(sum(cpu_s for cpu_s, _ in usages), sum(rss_bytes for _, rss_bytes in usages), len(usages))


def _usage(pid: int) -> tuple[float, int]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    return sum(map(int, stat[11:15])) / _TICKS, int(stat[21]) * _PAGE_BYTES


def family(pid: int) -> list[int]:
    """Return the ids of a process and of all its descendants, parents first."""
    pids = [pid]
    for parent in pids:
        try:
            lines = [path.read_text() for path in Path(f"/proc/{parent}/task").glob("*/children")]
        except (FileNotFoundError, ProcessLookupError):
            continue
        pids += [int(child) for line in lines for child in line.split()]
    return pids


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters at one moment."""

    at: float
    cores: dict[int, list[int]]
    target: Usage
    generator_s: float
    """CPU time of the generators and the vendor."""

    @classmethod
    def now(cls, target: Iterable[int], generator: Iterable[int]) -> "Counters":
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
        cores = {int(line[0][3:]): [int(word) for word in line[1:9]] for line in lines if line[0][3:].isdecimal()}
        return cls(time.monotonic(), cores, Usage.of(target), Usage.of(generator).cpu_s)

    def busy(self, before: "Counters", cores: Iterable[int]) -> float:
        """Return the share of the time since `before` in which these cores were busy, with any process."""
        spent = [[b - a for a, b in zip(before.cores[core], self.cores[core], strict=True)] for core in cores]
        return 1 - sum(core[3] + core[4] for core in spent) / max(1, sum(map(sum, spent)))


@dataclass(slots=True)
class Timeline:
    """Periodic measurements: seconds since the beginning, events so far, CPU seconds, resident bytes."""

    every_s: float = 0.25
    points: list[tuple[float, int, float, int]] = field(default_factory=list)

    async def watch(self, events: Callable[[], int], target: Iterable[int], *, begun: float) -> None:
        """Add a point every `every_s` until cancelled."""
        pids = list(target)
        while True:
            spent = Usage.of(pids)
            point = (time.monotonic() - begun, events(), spent.cpu_s, spent.rss_bytes)
            self.points.append(point)
            await asyncio.sleep(self.every_s)


def raise_priority(pid: int) -> None:
    """Raise the priority of a process, its descendants and their sessions, if this user has the right to do so.

    The priority of the processes alone is not enough: Linux first divides a core between sessions (autogroups).
    """
    with suppress(OSError):
        for member in family(pid):
            os.setpriority(os.PRIO_PROCESS, member, _RAISED_NICENESS)
            Path(f"/proc/{member}/autogroup").write_text(str(_RAISED_NICENESS))


def raise_descriptor_limit() -> int:
    """Raise the limit of open descriptors to the hard limit, and return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def describe(cores: Cores) -> str:
    """Return one line about this machine and the cores in use."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    load_1, _, _ = os.getloadavg()
    return (
        f"{time.strftime('%d %B %Y', time.gmtime())}: {os.cpu_count()} cores ({next(iter(names), 'unknown')}), "
        f"Python {platform.python_version()}, target on core {_listed(cores.target)}, generator, vendor and stores "
        f"on {_listed(cores.others)}, load average {load_1:.1f} before"
    )


def _listed(cores: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(cores)))
