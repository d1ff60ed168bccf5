"""What was seen of an attack, judged against its targets. Pure: figures in, verdicts out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.attack.connections import Outcomes
from bench.attack.witness import Window

GROWTH_MS = 20.0
"""What any wait of a healthy client may be longer than without the attack."""
HEALTH_MS = 50.0
"""What `/healthz` may take, unless it takes longer without the attack."""
READER_KIB = 256.0
MEMORY_RETURNS = 0.10
"""What the memory without kept logs may have grown by, once the server has had time."""
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Held:
    """What the server's process holds at one moment. `log_bytes`: None where its log is no file."""

    rss_bytes: int = 0
    descriptors: int = 0
    cpu_s: float = 0
    waited_s: float = 0
    """How long its main thread was ready to run while others had its core."""
    log_bytes: int | None = None
    kept_bytes: int = 0
    """Of the event logs of finished streams."""

    @property
    def beside_logs_bytes(self) -> int:
        return self.rss_bytes - self.kept_bytes


@dataclass(frozen=True, slots=True)
class Targets:
    """What an attack must not exceed, beside what holds for each: gaps, `/healthz`, streams of others.

    0 or False: no such target.
    """

    closed_within_s: float = 0
    """The server must have closed every connection of the attack by then."""
    most_open: int = 0
    """Connections of the attack at any one time."""
    connection_kib: float = 0
    """Of resident memory by connection of the attack, of as many as were open at once."""
    memory_returns: bool = False
    log_bytes_by_request: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What was measured of one attack. `before`, `peak` and `after` are None where the server's pid is unknown."""

    calm: Window
    """Before the attack."""
    under: Window
    calm_after: Window
    """After it. Both together last as long as the attack at least, so that they show what the machine does."""
    outcomes: Outcomes
    seconds: float
    before: Held | None = None
    peak: Held | None = None
    """The most at any moment of the attack, of memory and descriptors each."""
    after: Held | None = None
    most_open: int = 0
    requests: int = 0
    """Whole requests of the attack, where it counts them."""
    victims_failed: Sequence[str] = field(default=())
    """Failed requests of other users that the attack made itself: why."""
    log_of_a_reader_bytes: int = 0
    """Of the log that each connection of the attack has to itself; 0: they share logs that existed before."""
    stopped: str = ""
    """Why the attack was stopped before its end."""
    recovered: bool = True
    """Whether the healthy clients were answered as before within a minute after the attack."""

    def control_gap_ms(self, percent: float) -> float:
        """The gap without the attack, on the same machine in the same minute."""
        return max(self.calm.gap.at(percent), self.calm_after.gap.at(percent))

    @property
    def control_health_ms(self) -> float:
        """The longest wait for `/healthz` without the attack."""
        return max(self.calm.health.at(100), self.calm_after.health.at(100))

    @property
    def connection_kib(self) -> float | None:
        """How much the resident memory grew by connection, of as many as the attack had open at once."""
        if self.before is None or self.peak is None or not self.most_open:
            return None
        return (self.peak.rss_bytes - self.before.rss_bytes) / _KIB / self.most_open

    @property
    def waited(self) -> float:
        """The share of the attack's time that other processes kept the server off its core."""
        if self.before is None or self.peak is None:
            return 0
        return (self.peak.waited_s - self.before.waited_s) / self.seconds

    @property
    def log_bytes(self) -> int | None:
        """How much the server's log grew, at the end of the attack."""
        if self.before is None or self.peak is None or self.before.log_bytes is None:
            return None
        return (self.peak.log_bytes or 0) - self.before.log_bytes

    @property
    def log_bytes_by_request(self) -> float | None:
        return self.log_bytes / self.requests if self.log_bytes is not None and self.requests else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`missed`: the targets that the server missed. `uncertain`: misses that a late witness explains."""

    missed: Sequence[str] = ()
    uncertain: Sequence[str] = ()

    def __str__(self) -> str:
        if self.missed:
            return "missed: " + "; ".join(self.missed)
        if self.uncertain:
            return "does not count: " + "; ".join(self.uncertain)
        return "met"


def judge(seen: Seen, targets: Targets) -> Verdict:
    """Hold `seen` against the targets of every attack and against `targets`."""
    missed, uncertain = _timings(seen)
    missed += _witnessed(seen)
    missed += _connections(seen, targets)
    missed += _memory(seen, targets)
    log_bytes = seen.log_bytes_by_request
    if targets.log_bytes_by_request and log_bytes is not None and log_bytes > targets.log_bytes_by_request:
        missed.append(f"{log_bytes:,.0f} bytes of log by request")
    if seen.stopped:
        missed.append(seen.stopped)
    return Verdict(missed, uncertain)


def _timings(seen: Seen) -> tuple[list[str], list[str]]:
    """What is too late, and what may be too late only because the witness was.

    All limits are above what the witness sees without the attack: what other processes of the machine cause is in
    both.
    """
    missed, uncertain = [], []
    for what, found_ms, limit_ms, of_control_ms in (
        ("gap p99", seen.under.gap.at(99), 0, seen.control_gap_ms(99)),
        ("longest gap", seen.under.gap.at(100), 0, seen.control_gap_ms(100)),
        ("/healthz", seen.under.health.at(100), HEALTH_MS, seen.control_health_ms),
    ):
        most_ms = max(limit_ms, of_control_ms + GROWTH_MS)
        if found_ms < most_ms:
            continue
        told = f"{what} {found_ms:,.0f} ms, {found_ms - of_control_ms:+,.0f} ms"
        if found_ms - seen.under.late_ms < most_ms:
            uncertain.append(f"{told}, and the witness itself was {seen.under.late_ms:,.0f} ms late")
        else:
            missed.append(told)
    return missed, uncertain


def _witnessed(seen: Seen) -> list[str]:
    missed = []
    if seen.under.failed:
        missed.append(f"{seen.under.failed:,} healthy streams or requests failed")
    if not (seen.under.gap.count and seen.under.health.count):
        missed.append("no healthy stream or request was answered")
    if not seen.recovered:
        missed.append("healthy clients still wait a minute after")
    if seen.victims_failed:
        missed.append(f"{len(seen.victims_failed):,} answers of the vendor failed")
    return missed


def _connections(seen: Seen, targets: Targets) -> list[str]:
    missed, outcomes = [], seen.outcomes
    if targets.closed_within_s:
        if outcomes.still_open:
            missed.append(f"{outcomes.still_open:,} connections never closed")
        elif outcomes.closed_after_s is not None and outcomes.closed_after_s[1] > targets.closed_within_s:
            missed.append(f"connections closed after {outcomes.closed_after_s[1]:.0f} s")
    if targets.most_open and seen.most_open > targets.most_open:
        missed.append(f"{seen.most_open:,} connections at once")
    return missed


def _memory(seen: Seen, targets: Targets) -> list[str]:
    missed = []
    each_kib = seen.connection_kib
    if targets.connection_kib and each_kib is not None:
        most_kib = targets.connection_kib + seen.log_of_a_reader_bytes / _KIB
        if each_kib > most_kib:
            missed.append(f"{each_kib:,.0f} KiB by connection")
    if targets.memory_returns and seen.before is not None and seen.after is not None:
        left = seen.after.beside_logs_bytes / seen.before.beside_logs_bytes - 1
        if left > MEMORY_RETURNS:
            missed.append(f"memory {left:.0%} over before, without kept logs")
    return missed
