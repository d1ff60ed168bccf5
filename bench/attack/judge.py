"""Judge the measurements of an attack against its targets. This module does no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.attack.connections import Outcomes
from bench.attack.healthy_clients import Window

GROWTH_MS = 20.0
"""Every gap and every wait for `/healthz` must grow by less than this over the calm phases."""
HEALTH_MS = 50.0
"""A wait for `/healthz` below this always meets the target, however short it is in the calm phases."""
UPLOAD_FACTOR = 2.0
UPLOAD_GROWTH_MS = 250.0
"""An upload may take `UPLOAD_FACTOR` times its calm median and this much more."""
READER_KIB = 256.0
MEMORY_GROWTH = 0.10
"""The memory without event logs may have grown by this share after the attack."""
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
    event_log_bytes: int = 0
    """Size of the event logs of finished streams, which the server keeps in memory for resuming readers."""

    @property
    def rss_without_event_logs_bytes(self) -> int:
        return self.rss_bytes - self.event_log_bytes


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of one attack, in addition to those of all attacks: gaps, `/healthz`, streams of other users.

    0 or False means that the attack has no such target.
    """

    closed_within_s: float = 0
    """The server must close every connection of the attack within this time."""
    max_open: int = 0
    """The attack may never have more connections open than this."""
    connection_kib: float = 0
    """The highest growth of resident memory per connection, counting those that were open at the same time."""
    memory_returns: bool = False
    """Whether the memory without event logs must return to that before the attack, within `MEMORY_GROWTH`."""
    log_bytes_per_request: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurements of one attack. `before`, `peak` and `after` are None if the server's pid is unknown."""

    calm: Window
    """What the healthy clients measured before the attack."""
    under: Window
    """What the healthy clients measured during the attack."""
    calm_after: Window
    """What the healthy clients measured after the attack.

    Both calm phases together last at least as long as the attack, so they show the delays that the machine causes.
    """
    outcomes: Outcomes
    seconds: float
    before: ServerState | None = None
    peak: ServerState | None = None
    """The highest memory and the highest number of descriptors during the attack."""
    after: ServerState | None = None
    max_open: int = 0
    requests: int = 0
    """Number of complete requests of the attack, if it counts them."""
    victims_failed: Sequence[str] = field(default=())
    """The reasons why requests failed that the attack made in the name of other users."""
    log_of_a_reader_bytes: int = 0
    """Size of the separate event log of each connection of the attack; 0 if they share existing logs."""
    stopped: str = ""
    """Why the attack was stopped before its end."""
    recovered: bool = True
    """Whether `/healthz` responded within `HEALTH_MS` again within a minute after the attack, if it did before."""

    def calm_gap_ms(self, percent: int) -> float:
        """Return a percentile of the gap without the attack: the longer one of both calm phases."""
        return max(self.calm.gap.at(percent), self.calm_after.gap.at(percent))

    @property
    def calm_health_ms(self) -> float:
        """The longest response time of `/healthz` in both calm phases."""
        return max(self.calm.health.at(100), self.calm_after.health.at(100))

    @property
    def calm_upload_ms(self) -> float:
        """The median response time of an upload without the attack: the longer one of both calm phases."""
        return max(self.calm.upload.at(50), self.calm_after.upload.at(50))

    @property
    def connection_kib(self) -> float | None:
        """Growth of the resident memory per connection, counting those that were open at the same time."""
        if self.before is None or self.peak is None or not self.max_open:
            return None
        return (self.peak.rss_bytes - self.before.rss_bytes) / _KIB / self.max_open

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
    """`missed` lists the targets that the server missed, `uncertain` the misses that late timers explain."""

    missed: Sequence[str] = ()
    uncertain: Sequence[str] = ()

    def __str__(self) -> str:
        if self.missed:
            return "missed: " + "; ".join(self.missed)
        if self.uncertain:
            return "inconclusive: " + "; ".join(self.uncertain)
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
    """Return the delays that miss a target, and those that late timers of the healthy clients explain.

    All limits are relative to the calm phases, because delays that other processes cause occur in these too.
    """
    missed, uncertain = [], []
    under, health_ms, upload_ms = measurement.under, measurement.calm_health_ms, measurement.calm_upload_ms
    p99_ms, longest_ms = measurement.calm_gap_ms(99), measurement.calm_gap_ms(100)
    for label, value_ms, calm_ms, limit_ms in (
        ("gap p99", under.gap.at(99), p99_ms, p99_ms + GROWTH_MS),
        ("longest gap", under.gap.at(100), longest_ms, longest_ms + GROWTH_MS),
        ("/healthz", under.health.at(100), health_ms, max(HEALTH_MS, health_ms + GROWTH_MS)),
        ("upload", under.upload.at(100), upload_ms, UPLOAD_FACTOR * upload_ms + UPLOAD_GROWTH_MS),
    ):
        if value_ms < limit_ms:
            continue
        text = f"{label} {value_ms:,.0f} ms (+{value_ms - calm_ms:,.0f} ms)"
        if value_ms - under.late_ms < limit_ms:
            uncertain.append(f"{text}, but the timers of the healthy clients were {under.late_ms:,.0f} ms late")
        else:
            missed.append(text)
    return missed, uncertain


def _judge_clients(measurement: Measurement) -> list[str]:
    missed = []
    if measurement.under.failed:
        missed.append(f"{measurement.under.failed:,} healthy streams or requests failed")
    if not (measurement.under.gap.count and measurement.under.health.count):
        missed.append("no healthy stream or request was answered")
    if not measurement.recovered:
        missed.append("healthy clients are still delayed a minute after the attack")
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
    if targets.max_open and measurement.max_open > targets.max_open:
        missed.append(f"{measurement.max_open:,} connections at once")
    return missed


def _judge_memory(measurement: Measurement, targets: Targets) -> list[str]:
    missed = []
    growth_kib = measurement.connection_kib
    if targets.connection_kib and growth_kib is not None:
        max_kib = targets.connection_kib + measurement.log_of_a_reader_bytes / _KIB
        if growth_kib > max_kib:
            missed.append(f"{growth_kib:,.0f} KiB per connection")
    if targets.memory_returns and measurement.before is not None and measurement.after is not None:
        before_bytes = measurement.before.rss_without_event_logs_bytes
        growth = measurement.after.rss_without_event_logs_bytes / before_bytes - 1
        if growth > MEMORY_GROWTH:
            missed.append(f"memory without event logs {growth:.0%} above before the attack")
    return missed
