"""Metrics of attempts: outcomes, time to the first output, duration."""

from streams.metrics import CounterMetric, HistogramMetric

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60)
"""From an imperceptible to an unacceptable delay. Finer where a conversation begins to feel slow."""
NO_VENDOR = "none"
"""The vendor of a strategy that has no client. Its durations are not measured."""

OUTCOMES = CounterMetric("parley_vendor_attempts", "Attempts by outcome", ["stage", "vendor", "outcome"])
FIRST_OUTPUT = HistogramMetric(
    "parley_attempt_first_output_seconds",
    "Time to an attempt's first output, from the end of the input if it consumes one",
    ["stage", "vendor"],
    buckets=BUCKETS_S,
)
SECONDS = HistogramMetric(
    "parley_attempt_seconds",
    "Time from an attempt's start to its end, whatever its outcome",
    ["stage", "vendor"],
    buckets=BUCKETS_S,
)


def had_output(stage: str, vendor: str, *, after_s: float) -> None:
    """Record the time to an attempt's first output."""
    if vendor != NO_VENDOR:
        FIRST_OUTPUT.add(after_s, stage, vendor)


def ended(stage: str, vendor: str, outcome: str, *, elapsed_s: float) -> None:
    """Record an attempt that has ended."""
    OUTCOMES.add(1, stage, vendor, outcome)
    if vendor != NO_VENDOR:
        SECONDS.add(elapsed_s, stage, vendor)
