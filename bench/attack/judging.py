"""Judge the measurements of an attack against its targets. This module does no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.attack.connections import Outcomes
from bench.attack.witness import Window

GAP_GROWTH_MS = 20.0
HEALTH_MS = 50.0
UPLOAD_FACTOR = 2.0
UPLOAD_GROWTH_MS = 250.0
"""An upload may take `UPLOAD_FACTOR` times its calm median and this much more."""
READER_KIB = 256.0
MEMORY_RETURNS = 1.10
"""The highest allowed ratio of the resident memory after the attack to that before it."""
BUSY_CORE = 0.1
"""If the server waited for its core for at least this share of the time, other processes explain its delays."""
BUSY_CORE_EXPLAINS_MS = 250.0
"""A delay of this length or more is never explained by other processes."""
_KIB = 1024


@dataclass(frozen=True, slots=True)
class ServerState:
    """The server's resources at one moment. `log_bytes` is None if its standard output is not a file."""

    rss_bytes: int = 0
    descriptors: int = 0
    cpu_s: float = 0
    waited_s: float = 0
    """Time that its main thread was ready to run while other processes used its core."""
    log_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of one attack, in addition to those of all attacks: gaps, `/healthz`, streams of other users.

    0 or False means that the attack has no such target.
    """

    closed_within_s: float = 0
    """The server must close every connection of the attack within this time."""
    most_open: int = 0
    """The attack may never have more connections open than this."""
    connection_kib: float = 0
    """The highest growth of resident memory per connection, counting those that were open at the same time."""
    memory_returns: bool = False
    log_bytes_per_request: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurements of one attack. `before`, `peak` and `after` are None if the server's pid is unknown."""

    calm: Window
    """What the healthy clients measured before the attack."""
    under: Window
    """What the healthy clients measured during the attack."""
    outcomes: Outcomes
    seconds: float
    before: ServerState | None = None
    peak: ServerState | None = None
    """The highest memory and the highest number of descriptors during the attack."""
    after: ServerState | None = None
    most_open: int = 0
    requests: int = 0
    """Number of complete requests of the attack, if it counts them."""
    victims_failed: Sequence[str] = field(default=())
    """The reasons why requests failed that the attack made in the name of other users."""
    log_of_a_reader_bytes: int = 0
    """Size of the event log that each connection of the attack has of its own; 0 if they share existing logs."""
    stopped: str = ""
    """Why the attack was stopped before its end."""

    @property
    def growth_ms(self) -> tuple[float, float]:
        """Growth of the gap over the calm, at p99 and at the maximum."""
        p99, most = (self.under.gap.at(percent) - self.calm.gap.at(percent) for percent in (99, 100))
        return p99, most

    @property
    def connection_kib(self) -> float | None:
        """Growth of the resident memory per connection, counting those that were open at the same time."""
        if self.before is None or self.peak is None or not self.most_open:
            return None
        return (self.peak.rss_bytes - self.before.rss_bytes) / _KIB / self.most_open

    @property
    def waited(self) -> float:
        """The share of the attack's time that the server waited for its core."""
        if self.before is None or self.peak is None:
            return 0
        return (self.peak.waited_s - self.before.waited_s) / self.seconds

    @property
    def log_bytes(self) -> int | None:
        """Growth of the server's log during the attack."""
        if self.before is None or self.peak is None or self.before.log_bytes is None:
            return None
        return (self.peak.log_bytes or 0) - self.before.log_bytes

    @property
    def log_bytes_per_request(self) -> float | None:
        return self.log_bytes / self.requests if self.log_bytes is not None and self.requests else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`missed` lists the targets that the server missed, `uncertain` the misses that a busy machine explains."""

    missed: Sequence[str] = ()
    uncertain: Sequence[str] = ()

    def __str__(self) -> str:
        if self.missed:
            return "missed: " + "; ".join(self.missed)
        if self.uncertain:
            return "does not count: " + "; ".join(self.uncertain)
        return "met"


def judge(measurement: Measurement, targets: Targets) -> Verdict:
    """Judge `measurement` by the targets of all attacks and by `targets`."""
    missed, uncertain = _judge_timings(measurement)
    missed += _judge_clients(measurement)
    missed += _judge_connections(measurement, targets)
    missed += _judge_memory(measurement, targets)
    log_bytes = measurement.log_bytes_per_request
    if targets.log_bytes_per_request and log_bytes is not None and log_bytes > targets.log_bytes_per_request:
        missed.append(f"{log_bytes:,.0f} bytes of log per request")
    if measurement.stopped:
        missed.append(measurement.stopped)
    return Verdict(missed, uncertain)


def _judge_timings(measurement: Measurement) -> tuple[list[str], list[str]]:
    """Return the delays that miss a target, and those that other processes explain."""
    missed, uncertain = [], []
    p99_ms, most_ms = measurement.growth_ms
    health_ms = measurement.under.health.at(100)
    upload_limit_ms = UPLOAD_FACTOR * measurement.calm.upload.at(50) + UPLOAD_GROWTH_MS
    for label, value_ms, limit_ms in (
        ("gap p99", p99_ms, GAP_GROWTH_MS),
        ("longest gap", most_ms, GAP_GROWTH_MS),
        ("/healthz", health_ms, HEALTH_MS),
        ("upload", measurement.under.upload.at(100), upload_limit_ms),
    ):
        if value_ms < limit_ms:
            continue
        text = f"{label} {'+' if 'gap' in label else ''}{value_ms:,.0f} ms"
        if value_ms - measurement.under.late_ms < limit_ms:
            uncertain.append(
                f"{text}, but the timers of the healthy clients were {measurement.under.late_ms:,.0f} ms late"
            )
        elif measurement.waited >= BUSY_CORE and value_ms < BUSY_CORE_EXPLAINS_MS:
            uncertain.append(f"{text}, but the server waited for its core for {measurement.waited:.0%} of the time")
        else:
            missed.append(text)
    return missed, uncertain


def _judge_clients(measurement: Measurement) -> list[str]:
    missed = []
    if measurement.under.failed:
        missed.append(f"{measurement.under.failed:,} healthy streams or requests failed")
    if not (measurement.under.gap.count and measurement.under.health.count):
        missed.append("no healthy stream or request was answered")
    if measurement.victims_failed:
        missed.append(f"{len(measurement.victims_failed):,} requests of other users failed")
    return missed


def _judge_connections(measurement: Measurement, targets: Targets) -> list[str]:
    missed, outcomes = [], measurement.outcomes
    if targets.closed_within_s:
        if outcomes.still_open:
            missed.append(f"{outcomes.still_open:,} connections never closed")
        elif outcomes.closed_after_s is not None and outcomes.closed_after_s[1] > targets.closed_within_s:
            missed.append(f"connections closed after {outcomes.closed_after_s[1]:.0f} s")
    if targets.most_open and measurement.most_open > targets.most_open:
        missed.append(f"{measurement.most_open:,} connections at once")
    return missed


def _judge_memory(measurement: Measurement, targets: Targets) -> list[str]:
    missed = []
    growth_kib = measurement.connection_kib
    if targets.connection_kib and growth_kib is not None:
        most_kib = targets.connection_kib + measurement.log_of_a_reader_bytes / _KIB
        if growth_kib > most_kib:
            missed.append(f"{growth_kib:,.0f} KiB per connection")
    if targets.memory_returns and measurement.before is not None and measurement.after is not None:
        ratio = measurement.after.rss_bytes / measurement.before.rss_bytes
        if ratio > MEMORY_RETURNS:
            missed.append(f"memory {ratio - 1:.0%} above before the attack")
    return missed
