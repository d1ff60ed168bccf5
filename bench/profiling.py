"""Profile the server under a paced load with cProfile, and group the functions by purpose."""

import asyncio
import os
import pstats
import signal
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from bench.deployment import Deployment, DeploymentSpec, spawned
from bench.figures import Figures, table
from bench.load import measure_load
from bench.machine import Cores
from bench.targets import PROFILED

_STRIPPED = ("site-packages/", "/lib/python3.11/", f"{Path(__file__).parents[1]}/")
_MAX_FUNCTIONS = 25
_WRITTEN_S = 30
_LOOK_S = 0.05
_PURPOSES = (
    ("read the vendor: http1 and HTTP parser", ("vendors/http/http1/", "vendors/http/transport.py")),
    ("read the vendor: events and their JSON", ("vendors/http/sse.py", "vendors/chat/")),
    ("attempts, timeouts, breakers", ("vendors/", "actors/clients/strategies.py")),
    ("the play: answer, receipt, turn", ("actors/",)),
    ("encode the event", ("streams/events.py", "streams/wire/")),
    ("event log, waking the reader", ("streams/log.py", "streams/tasks.py", "streams/")),
    ("write to the client", ("streams/sse.py", "aiohttp/http_writer.py", "aiohttp/web_response.py")),
    ("aiohttp's server", ("aiohttp/",)),
    ("stores", ("storage/", "asyncpg/", "redis/")),
    (
        "log lines and metrics",
        ("structlog/", "prometheus_client/", "logging/", "streams/metrics.py", "app/observing/logs.py"),
    ),
    (
        "the request: routing, authentication, parameters",
        ("app/", "pydantic/", "streams/body.py", "streams/input_buffer.py"),
    ),
    ("asyncio", ("asyncio/",)),
)


_LOOP = "the event loop in C: socket reads and writes, timers"


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    share: float
    us: float
    calls: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Microseconds and calls per delta of the vendor, with microseconds scaled to a run without the profiler.

    The profiler does not see the event loop, which is written in C: it is the rest of the process's CPU time.
    """

    load: str
    us_per_delta: float
    quiet: bool
    """Whether the process had its core to itself. Otherwise the times include waiting for the core."""
    groups: Sequence[Line]
    functions: Sequence[Line]

    def table(self) -> str:
        """Return two Markdown tables: by purpose, and by function."""
        return "\n".join(
            table(
                (label, "share", "µs/delta", "calls/delta"),
                [[line.label, f"{line.share:.1%}", f"{line.us:.2f}", f"{line.calls:.2f}"] for line in lines],
            )
            for label, lines in (("purpose", self.groups), ("function (own time)", self.functions))
        )


def profile_server() -> Profile:
    """Run the paced load twice: without the profiler for the cost of a delta, and with it for the shares."""
    plain = _run(None)
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as folder:
        path = Path(folder) / "server.profile"
        profiled_figures = _run(path)
        return read_profile(path, us_per_delta=plain.us_per_delta, deltas=profiled_figures.deltas)


def _run(profile: Path | None) -> Figures:
    everywhere = os.sched_getaffinity(0)
    cores, load = Cores.split(), PROFILED.load
    try:
        with asyncio.Runner() as runner:
            context = spawned(DeploymentSpec(frozenset(load.strategies), profile=profile), cores)
            deployment = runner.run(context.__aenter__())
            try:
                _toggle(deployment, profile)
                result = measure_load(load, deployment, cores, deltas=PROFILED.deltas)
                _toggle(deployment, profile)
                if profile is not None:
                    runner.run(_until(profile.with_suffix(".cpu").exists))
            finally:
                runner.run(context.__aexit__(None, None, None))
    finally:
        os.sched_setaffinity(0, everywhere)
    return result


def _toggle(deployment: Deployment, profile: Path | None) -> None:
    if profile is not None:
        os.kill(deployment.pids[0], signal.SIGUSR2)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(_WRITTEN_S):
        while not condition():  # noqa: ASYNC110 - the condition depends on another process
            await asyncio.sleep(_LOOK_S)


def read_profile(path: Path, *, us_per_delta: float, deltas: int) -> Profile:
    """Read a profile that `bench.profiled_server` has written, and sort its functions by own time."""
    cpu_s = float(path.with_suffix(".cpu").read_text())
    times: defaultdict[str, float] = defaultdict(float)
    calls: Counter[str] = Counter()
    groups: defaultdict[str, float] = defaultdict(float)
    group_calls: Counter[str] = Counter()
    for (file, line, function), (_, count, own_s, _, _) in pstats.Stats(str(path)).stats.items():  # type: ignore[attr-defined]
        name, group = _name(file, line, function), _group(file, function)
        times[name] += own_s
        calls[name] += count
        groups[group] += own_s
        group_calls[group] += count
    functions_s = sum(times.values())
    groups[_LOOP] = max(0.0, cpu_s - functions_s)
    total_s = max(sum(groups.values()), 1e-9)

    def lines(own_times: Mapping[str, float], counts: Mapping[str, int], limit: int) -> list[Line]:
        return [
            Line(name, own_s / total_s, us_per_delta * own_s / total_s, counts.get(name, 0) / max(1, deltas))
            for name, own_s in sorted(own_times.items(), key=itemgetter(1), reverse=True)[:limit]
        ]

    return Profile(
        PROFILED.load.name,
        us_per_delta,
        functions_s < cpu_s,
        lines(groups, group_calls, len(groups)),
        lines(times, calls, _MAX_FUNCTIONS),
    )


def _group(file: str, function: str) -> str:
    short = _short(file)
    if file == "~":
        return _built_in(function)
    matches = [(len(part), name) for name, parts in _PURPOSES for part in parts if short.startswith(part)]
    if matches:
        return max(matches)[1]
    return "Python's standard library" if "/lib/python" in file else "other"


def _built_in(function: str) -> str:
    for name, words in (
        ("write to the client", ("socket", "write")),
        ("read the vendor: http1 and HTTP parser", ("httptools", "feed_data", "HttpResponseParser")),
        ("JSON", ("orjson", "dumps", "loads")),
        ("digest", ("sha256", "_hashlib", "hash")),
    ):
        if any(word in function for word in words):
            return name
    return "built-in functions"


def _short(file: str) -> str:
    for before in _STRIPPED:
        file = file.rpartition(before)[2]
    return file


def _name(file: str, line: int, function: str) -> str:
    return function.strip("<>") if file == "~" else f"{_short(file)}:{line} {function}"
