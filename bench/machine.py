"""Clocks and counters of this machine: what processes spent, how busy cores were, as Linux tells it."""

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

_PREFERRED = -15


@dataclass(frozen=True, slots=True)
class Cores:
    """Where the target runs, and where all the rest does: generator, vendor, stores."""

    target: frozenset[int]
    others: frozenset[int]

    @classmethod
    def parted(cls) -> "Cores":
        """The first core of this process for the target, the rest for the others."""
        ours = frozenset(os.sched_getaffinity(0))
        first = frozenset({min(ours)})
        return cls(first, (ours - first) or first)

    @property
    def are_parted(self) -> bool:
        """Whether the rest keeps off the target's cores."""
        return self.target.isdisjoint(self.others)


@dataclass(frozen=True, slots=True)
class Spent:
    """By a process and all that it has started."""

    cpu_s: float = 0
    rss_bytes: int = 0
    processes: int = 0

    @classmethod
    def of(cls, pids: Iterable[int]) -> "Spent":
        found = [_spent(pid) for root in pids for pid in family(root)]
        return cls(sum(cpu_s for cpu_s, _ in found), sum(rss_bytes for _, rss_bytes in found), len(found))


def _spent(pid: int) -> tuple[float, int]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    return (int(stat[11]) + int(stat[12])) / _TICKS, int(stat[21]) * _PAGE_BYTES


def family(pid: int) -> list[int]:
    """The ids of a process and of all its descendants, parents first."""
    found = [pid]
    for parent in found:
        try:
            told = [path.read_text() for path in Path(f"/proc/{parent}/task").glob("*/children")]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [int(child) for line in told for child in line.split()]
    return found


@dataclass(frozen=True, slots=True)
class Reading:
    """One moment."""

    at: float
    cores: dict[int, list[int]]
    target: Spent
    generator_s: float
    """CPU of the generators and the vendor."""

    @classmethod
    def now(cls, target: Iterable[int], generator: Iterable[int]) -> "Reading":
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
        cores = {int(line[0][3:]): [int(word) for word in line[1:9]] for line in lines if line[0][3:].isdecimal()}
        return cls(time.monotonic(), cores, Spent.of(target), Spent.of(generator).cpu_s)

    def busy(self, before: "Reading", cores: Iterable[int]) -> float:
        """The share of the time since `before` that these cores were at work, for whomever."""
        spent = [[b - a for a, b in zip(before.cores[core], self.cores[core], strict=True)] for core in cores]
        return 1 - sum(core[3] + core[4] for core in spent) / max(1, sum(map(sum, spent)))


@dataclass(slots=True)
class Timeline:
    """What was counted every so often: seconds from the beginning, events so far, CPU seconds, bytes."""

    every_s: float = 0.25
    points: list[tuple[float, int, float, int]] = field(default_factory=list)

    async def watch(self, events: Callable[[], int], target: Iterable[int], *, begun: float) -> None:
        """Go on until it is cancelled."""
        pids = list(target)
        while True:
            spent = Spent.of(pids)
            point = (time.monotonic() - begun, events(), spent.cpu_s, spent.rss_bytes)
            self.points.append(point)
            await asyncio.sleep(self.every_s)


def prefer(pid: int) -> None:
    """Let the main thread of a process run before others on its core, where this user may.

    Linux shares a core between sessions first (autogroups), so that the priority of a process is not enough.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _PREFERRED)
        Path(f"/proc/{pid}/autogroup").write_text(str(_PREFERRED))


def raise_descriptor_limit() -> int:
    """As many sockets as the machine allows this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def described(cores: Cores) -> str:
    """One line about this machine and what runs where on it."""
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
