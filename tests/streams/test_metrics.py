"""Metrics have the same text format as those of the Prometheus client."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.registry import Collector

from streams.metrics import CounterMetric, GaugeMetric, HistogramMetric

BUCKETS_S = (0.005, 0.25, 1, 60)
SECONDS = (0.0, 0.004, 0.005, 0.0050001, 0.25, 0.3, 1.0, 59.9, 60.0, 60.1, 1e6)


def text(collector: Collector) -> str:
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry).decode()


def test_durations_are_exposed_as_a_histogram() -> None:
    disable_created_metrics()
    ours = HistogramMetric("a_seconds", "How long", ["kind", "stage"], buckets=BUCKETS_S)
    theirs = Histogram("a_seconds", "How long", ["kind", "stage"], buckets=BUCKETS_S, registry=None)
    assert text(ours) == text(theirs)
    for number, seconds in enumerate(SECONDS):
        ours.add(seconds, "talk", f'first "{number % 2}"\n')
        theirs.labels("talk", f'first "{number % 2}"\n').observe(seconds)
    assert text(ours) == text(theirs)
    assert 'le="0.25"' in text(ours)


def test_counts_are_exposed_as_a_counter() -> None:
    disable_created_metrics()
    ours, theirs = (
        CounterMetric("a_ends", "Ends", ["outcome"]),
        Counter("a_ends", "Ends", ["outcome"], registry=None),
    )
    assert text(ours) == text(theirs)
    for outcome in ("end", "error", "end"):
        ours.add(1, outcome)
        theirs.labels(outcome).inc()
    assert text(ours) == text(theirs)
    assert 'a_ends_total{outcome="end"} 2.0' in text(ours)


def test_amounts_are_exposed_as_a_gauge() -> None:
    ours, theirs = GaugeMetric("a_level", "Now", ["kind"]), Gauge("a_level", "Now", ["kind"], registry=None)
    for change in (1, 1, -1, -1):
        ours.add(change, "talk")
        theirs.labels("talk").inc(change)
        assert text(ours) == text(theirs)
