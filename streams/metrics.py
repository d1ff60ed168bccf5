"""What every stream counts and times for `/metrics`. Written by the event loop alone, hence without locks."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric


class Counts:
    """A counter. `labels` name what its counts are told apart by."""

    _family: type[CounterMetricFamily | GaugeMetricFamily] = CounterMetricFamily

    def __init__(self, name: str, documentation: str, labels: Sequence[str]) -> None:
        self._head = (name, documentation, labels)
        self._counts: dict[tuple[str, ...], int] = {}
        REGISTRY.register(self)

    def add(self, count: int, *labels: str) -> None:
        """Count so many more."""
        self._counts[labels] = self._counts.get(labels, 0) + count

    def collect(self) -> Iterable[Metric]:
        """What `/metrics` tells."""
        name, documentation, names = self._head
        family = self._family(name, documentation, labels=names)
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        return [family]


class Levels(Counts):
    """A gauge: less may be added than nothing."""

    _family = GaugeMetricFamily


class Times:
    """A histogram of seconds; `buckets` are the upper bounds of all but the last."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], *, buckets: Sequence[float]) -> None:
        self._head = (name, documentation, labels)
        self._bounds = [*map(float, buckets), float("inf")]
        self._names = [*map(str, self._bounds[:-1]), "+Inf"]
        self._rows: dict[tuple[str, ...], list[float]] = {}
        """How many there are in each bucket, and the sum of all."""
        REGISTRY.register(self)

    def add(self, seconds: float, *labels: str) -> None:
        """Count one that took so long."""
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = [0.0] * (len(self._bounds) + 1)
        row[bisect_left(self._bounds, seconds)] += 1
        row[-1] += seconds

    def collect(self) -> Iterable[Metric]:
        """What `/metrics` tells: there a bucket holds what those before it hold too."""
        name, documentation, names = self._head
        family = HistogramMetricFamily(name, documentation, labels=names)
        for labels, (*counts, total) in self._rows.items():
            family.add_metric(labels, list(zip(self._names, accumulate(counts), strict=True)), total)
        return [family]
