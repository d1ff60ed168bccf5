"""What `/metrics` tells of attempts: how they came out, when they first had output, how long they took."""

from streams.metrics import Counts, Times

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60)
"""Between what nobody hears and what nobody waits for; close together where a talk begins to feel slow."""
NO_VENDOR = "none"
"""The vendor of a strategy that could not be asked: its times would be nobody's."""

OUTCOMES = Counts("parley_vendor_attempts", "Attempts by outcome", ["stage", "vendor", "outcome"])
FIRST_OUTPUT = Times(
    "parley_attempt_first_output_seconds",
    "Time to an attempt's first output, from the end of the input where it hears one",
    ["stage", "vendor"],
    buckets=BUCKETS_S,
)
SECONDS = Times(
    "parley_attempt_seconds",
    "Time from an attempt's begin to its end, whatever its outcome",
    ["stage", "vendor"],
    buckets=BUCKETS_S,
)


def had_output(stage: str, vendor: str, *, after_s: float) -> None:
    """Count the first output of an attempt."""
    if vendor != NO_VENDOR:
        FIRST_OUTPUT.add(after_s, stage, vendor)


def ended(stage: str, vendor: str, outcome: str, *, elapsed_s: float) -> None:
    """Count an attempt that is over."""
    OUTCOMES.add(1, stage, vendor, outcome)
    if vendor != NO_VENDOR:
        SECONDS.add(elapsed_s, stage, vendor)
