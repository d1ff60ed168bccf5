"""Counters, gauges and histograms for `/metrics` without locks: only the event loop may update them."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric


class CounterMetric:
    """A counter. `labels` are the label names."""

    _family: type[CounterMetricFamily | GaugeMetricFamily] = CounterMetricFamily

    def __init__(self, name: str, documentation: str, labels: Sequence[str]) -> None:
        self._head = (name, documentation, labels)
        self._counts: dict[tuple[str, ...], int] = {}
        REGISTRY.register(self)

    def add(self, count: int, *labels: str) -> None:
        """Add `count` to the series with these label values."""
        self._counts[labels] = self._counts.get(labels, 0) + count

    def counts(self) -> dict[tuple[str, ...], int]:
        """Return a copy of the count of each series, by its label values."""
        return dict(self._counts)

    def collect(self) -> Iterable[Metric]:
        name, documentation, names = self._head
        family = self._family(name, documentation, labels=names)
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        return [family]


class GaugeMetric(CounterMetric):
    """A gauge: negative amounts may be added."""

    _family = GaugeMetricFamily


class HistogramMetric:
    """A histogram of durations in seconds. `buckets` are the upper bounds; a last bucket without bound is added."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], *, buckets: Sequence[float]) -> None:
        self._head = (name, documentation, labels)
        self._bounds = [*map(float, buckets), float("inf")]
        self._names = [*map(str, self._bounds[:-1]), "+Inf"]
        self._rows: dict[tuple[str, ...], list[float]] = {}
        """By label values: the number of observations in each bucket, then the sum of all observations."""
        REGISTRY.register(self)

    def add(self, seconds: float, *labels: str) -> None:
        """Add one observation to the series with these label values."""
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = [0.0] * (len(self._bounds) + 1)
        row[bisect_left(self._bounds, seconds)] += 1
        row[-1] += seconds

    def rows(self) -> dict[tuple[str, ...], list[float]]:
        """Return a copy of each series by its label values: the count of each bucket, then the sum."""
        return {labels: list(row) for labels, row in self._rows.items()}

    def collect(self) -> Iterable[Metric]:
        name, documentation, names = self._head
        family = HistogramMetricFamily(name, documentation, labels=names)
        for labels, (*counts, total) in self._rows.items():
            # In the exposition format, each bucket also counts the observations of all smaller buckets.
            family.add_metric(labels, list(zip(self._names, accumulate(counts), strict=True)), total)
        return [family]
