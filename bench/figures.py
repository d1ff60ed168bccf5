"""The figures of a load, as a table row and as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.arrivals import Result
from bench.machine import Cores, Counters
from bench.scenarios import Load

FULL = 0.9
"""Share of a core from which on the core counts as busy."""
GENERATOR_BOUND = "generator-bound"
UNKNOWN = "-"
_MAX_FAULTS = 5
_FAULT_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution of times. `quantiles` holds the percentiles 0 to 100 in milliseconds."""

    count: int = 0
    quantiles: Sequence[float] = ()
    p999_ms: float = 0

    @classmethod
    def of(cls, seconds: Iterable[float]) -> "Spread":
        ranked = sorted(seconds)
        if not ranked:
            return cls()
        last = len(ranked) - 1
        quantiles = [ranked[last * percent // 100] * 1000 for percent in range(101)]
        return cls(len(ranked), quantiles, ranked[last * 999 // 1000] * 1000)

    def at(self, percent: int) -> float:
        return self.quantiles[percent] if self.quantiles else 0

    def __str__(self) -> str:
        return " / ".join(f"{self.at(percent):,.1f}" for percent in (50, 95, 99, 100)) if self.count else UNKNOWN


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one load against one target.

    `deltas` is the number of deltas that the vendor sent, 0 if unknown.
    """

    load: str
    target: str
    seconds: float
    streams: int
    ended: int
    """Streams that ended with `end`."""
    errors: dict[str, int]
    """Number of streams that ended with `error`, by error type."""
    faults: dict[str, int]
    """Number of incomplete or invalid streams, by reason."""
    read_in_full: int
    events: int
    deltas: int
    first_event: Spread
    first_output: Spread
    gap: Spread
    """Time between two reads that brought events, for the streams that are parsed in full."""
    longest_gap: Spread
    """The longest gap of each stream."""
    transit: Spread
    """Time from the vendor's write of a delta to the client's read of it."""
    cpu_s: float
    target_busy: float | None
    """CPU share of the target in the cores that it can use; None if its process is unknown."""
    target_core_busy: float | None
    """Busy share of the target's cores; None if unknown, or if other processes are meant to run on them too."""
    generator_core_busy: float
    rss_bytes: int
    timeline: Sequence[tuple[float, int, float, int]] = field(default=())

    @property
    def failed(self) -> int:
        return sum(self.faults.values()) + sum(self.errors.values())

    @property
    def bound(self) -> str:
        """The side that limited the throughput."""
        if self.target_busy is None:
            return UNKNOWN
        if self.target_busy >= FULL:
            return "target"
        if self.target_core_busy is None:
            return UNKNOWN
        return "other processes" if self.target_core_busy >= FULL else GENERATOR_BOUND

    @property
    def us_per_event(self) -> float:
        return self.cpu_s * 1e6 / self.events if self.events else 0

    @property
    def us_per_delta(self) -> float:
        return self.cpu_s * 1e6 / self.deltas if self.deltas else 0

    @property
    def us_per_stream(self) -> float:
        return self.cpu_s * 1e6 / self.ended if self.ended else 0


def figures(
    load: Load, result: Result, before: Counters, after: Counters, cores: Cores, *, target: str, deltas: int = 0
) -> Figures:
    """Compute the figures of `result`. `deltas` is the number of deltas per stream, 0 if unknown."""
    good, elapsed_s = result.good, max(1e-9, after.at - before.at)
    has_target = before.target.processes and after.target.processes
    cpu_s = after.target.cpu_s - before.target.cpu_s if has_target else 0
    usable = max(1, min(len(cores.target), after.target.processes))
    errors = Counter(
        stream.outcome.removeprefix("error ")
        for stream in result.streams
        if not stream.fault and stream.outcome != "end"
    )
    faults = Counter(stream.fault[:_FAULT_CHARACTERS] for stream in result.streams if stream.fault)
    return Figures(
        load=load.name,
        target=target,
        seconds=result.seconds,
        streams=len(result.streams),
        ended=len(good),
        errors=dict(errors),
        faults=dict(faults.most_common(_MAX_FAULTS)) | _others(faults),
        read_in_full=result.sample.read,
        events=sum(stream.events for stream in good),
        deltas=deltas * len(good),
        first_event=Spread.of(s.first_event - s.begun for s in good),
        first_output=Spread.of(s.first_output - s.begun for s in good if s.first_output),
        gap=Spread.of(result.sample.gaps_s),
        longest_gap=Spread.of(s.longest_gap_s for s in good),
        transit=Spread.of(result.sample.transits_s),
        cpu_s=cpu_s,
        target_busy=cpu_s / elapsed_s / usable if has_target else None,
        target_core_busy=after.busy(before, cores.target) if has_target and cores.are_separate else None,
        generator_core_busy=after.busy(before, cores.others),
        rss_bytes=after.target.rss_bytes,
        timeline=result.timeline.points,
    )


def _others(faults: Counter[str]) -> dict[str, int]:
    remaining = faults.total() - sum(count for _, count in faults.most_common(_MAX_FAULTS))
    return {"others": remaining} if remaining else {}


HEADINGS = (
    *("load", "target", "streams", "failed", "streams/s", "events/s", "limit"),
    *("first event ms p50/p95/p99/max", "first output ms", "gap ms", "transit ms"),
    *("µs/event", "µs/delta", "µs/stream", "target CPU", "target core", "generator core"),
)


def row(result: Figures) -> list[str]:
    """Return the cells of a table row under `HEADINGS`.

    Throughputs are given only if the target was the limit.
    """
    throughput_known = result.bound == "target"
    return [
        result.load,
        result.target,
        f"{result.streams:,}",
        f"{result.failed:,}",
        f"{result.ended / result.seconds:,.0f}" if throughput_known else UNKNOWN,
        f"{result.events / result.seconds:,.0f}" if throughput_known else UNKNOWN,
        result.bound,
        str(result.first_event),
        str(result.first_output),
        str(result.gap),
        str(result.transit),
        _us(result.us_per_event),
        _us(result.us_per_delta),
        _us(result.us_per_stream),
        *map(_share, (result.target_busy, result.target_core_busy, result.generator_core_busy)),
    ]


def _share(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share:.0%}"


def _us(number: float) -> str:
    return f"{number:,.1f}" if 0 < number < 100 else f"{number:,.0f}" if number else UNKNOWN


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
