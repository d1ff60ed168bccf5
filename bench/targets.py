"""The rows of the comparison with the baseline, and the target of each."""

from dataclasses import dataclass
from typing import Literal

from bench.scenarios import Load

Measure = Literal["delta", "stream", "lateness"]
_READ_EVERY = 16
FIRST_P50_MS = 1.0
FIRST_P99_MS = 3.0
GENERATOR_FREE = 0.7
"""A latency counts only if the generator's core was less busy than this."""
MEMORY_KIB = 40.0
_WAIT_MS = 50


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the comparison. `max_ratio` is the highest allowed ratio of the CPU cost to the baseline's.

    Rows of the measure `lateness` have no such ratio. With `no_failure`, no stream may fail.
    """

    load: Load
    measure: Measure
    deltas: int
    rounds: int = 1
    max_ratio: float = 0
    no_failure: bool = False


@dataclass(frozen=True, slots=True)
class Suite:
    rows: tuple[Row, ...]
    waiting: int
    """Number of streams that wait for a silent vendor while the server's memory is measured."""
    users: int

    @property
    def models(self) -> frozenset[str]:
        return frozenset(name for row in self.rows for name in row.load.strategies) | {"held", "20x0"}


def _paced(at_once: int, *, deltas: int, rounds: int) -> Row:
    load = Load(
        f"paced, {at_once:,} at once",
        [f"{deltas}x20"],
        streams=2 * at_once,
        at_once=at_once,
        over_s=deltas * 0.02,
        read_every=_READ_EVERY,
    )
    return Row(load, "delta", deltas, rounds, max_ratio=1.0, no_failure=at_once == 2000)


def _first(*, deltas: int, seconds: float, rounds: int) -> Row:
    """Return a row in which streams begin at the rate at which they end, so that 200 are live."""
    rate = 200 / (_WAIT_MS / 1000 + (deltas - 1) * 0.2)
    load = Load(
        "first event, 200 live",
        [f"{deltas}x200w{_WAIT_MS}"],
        streams=round(rate * seconds),
        rate=rate,
        arrivals="even",
        read_every=_READ_EVERY,
    )
    return Row(load, "lateness", deltas, rounds)


def _unpaced(at_once: int, *, streams: int, rounds: int) -> Row:
    load = Load(
        f"unpaced, {at_once:,} at once", ["100x0"], streams=streams, at_once=at_once, read_every=_READ_EVERY
    )
    return Row(load, "delta", 100, rounds, max_ratio=1.4)


def _short(*, streams: int, rounds: int) -> Row:
    load = Load("short (20 deltas), 100 at once", ["20x0"], streams=streams, at_once=100, read_every=_READ_EVERY)
    return Row(load, "stream", 20, rounds, max_ratio=2.5)


QUICK = Suite(
    rows=(
        _paced(50, deltas=100, rounds=1),
        _paced(200, deltas=100, rounds=1),
        _first(deltas=10, seconds=6, rounds=1),
        _unpaced(100, streams=1000, rounds=1),
        _short(streams=1500, rounds=1),
    ),
    waiting=1000,
    users=200,
)
FULL = Suite(
    rows=(
        _paced(50, deltas=250, rounds=2),
        _paced(200, deltas=250, rounds=2),
        _paced(1000, deltas=250, rounds=2),
        _paced(2000, deltas=250, rounds=1),
        _first(deltas=20, seconds=12, rounds=5),
        _unpaced(100, streams=3000, rounds=2),
        _unpaced(500, streams=3000, rounds=2),
        _unpaced(1000, streams=4000, rounds=2),
        _short(streams=6000, rounds=2),
    ),
    waiting=9000,
    users=1000,
)
PROFILED = _paced(200, deltas=250, rounds=1)
