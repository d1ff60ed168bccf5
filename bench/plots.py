"""Plots of figures as PNG files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl

from bench.figures import Figures, Spread
from bench.soak.samples import Sample
from bench.soak.schedule import Disturbance

mpl.use("Agg")

from matplotlib import pyplot as plt

_SIZE = (8, 4.5)
_DPI = 110


@contextmanager
def _picture(path: Path, title: str) -> Iterator[Any]:
    figure, axes = plt.subplots(figsize=_SIZE, dpi=_DPI, layout="constrained")
    try:
        axes.set_title(title)
        axes.grid(visible=True, alpha=0.3)
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Software": None})
    finally:
        plt.close(figure)


def bars(path: Path, title: str, unit: str, groups: Mapping[str, Mapping[str, float]]) -> None:
    """Draw a group of bars for each load, with one bar per target."""
    with _picture(path, title) as axes:
        targets = list(dict.fromkeys(name for group in groups.values() for name in group))
        width = 0.8 / max(1, len(targets))
        for number, target in enumerate(targets):
            positions = [at + (number - (len(targets) - 1) / 2) * width for at in range(len(groups))]
            drawn_bars = axes.bar(
                positions, [group.get(target, 0) for group in groups.values()], width, label=target
            )
            axes.bar_label(drawn_bars, fmt="%.1f", fontsize=8)
        axes.set_xticks(range(len(groups)), list(groups), fontsize=8)
        axes.set_ylabel(unit)
        axes.legend()


def latencies(path: Path, title: str, spreads: Mapping[str, Spread]) -> None:
    """Draw one line per spread: milliseconds by percentile."""
    with _picture(path, title) as axes:
        for name, spread in spreads.items():
            if spread.count:
                axes.plot(range(101), spread.quantiles, label=f"{name} (p50 {spread.at(50):,.1f} ms)")
        axes.set_xlabel("percentile")
        axes.set_ylabel("ms")
        axes.set_yscale("log")
        if axes.get_legend_handles_labels()[0]:
            axes.legend()


def over_time(path: Path, title: str, results: Sequence[Figures]) -> None:
    """Draw the events per second and the target's CPU share over the time of the load."""
    with _picture(path, title) as axes:
        shares = axes.twinx()
        for figures in results:
            at, rates = _rates(figures, lambda point: point[1])
            axes.plot(at, rates, label=f"{figures.target}: events/s")
            at, busy = _rates(figures, lambda point: point[2])
            if any(busy):
                shares.plot(at, busy, linestyle=":", label=f"{figures.target}: CPU")
        axes.set_xlabel("seconds")
        axes.set_ylabel("events/s")
        shares.set_ylabel("cores (dotted)")
        shares.set_ylim(bottom=0)
        axes.set_ylim(bottom=0)
        axes.legend()


def plot_soak(path: Path, samples: Sequence[Sample], disturbances: Sequence[Disturbance]) -> None:
    """Draw memory and streams over the time of a soak.

    Coloured spans show when processes were replaced and stores were unavailable.
    """
    colours = {"server": "tab:gray", "PostgreSQL": "tab:blue", "Valkey": "tab:red"}
    with _picture(path, "Soak: anonymous memory and streams") as axes:
        at = [sample.at_s / 60 for sample in samples]
        axes.plot(at, [sample.children_bytes / 2**20 for sample in samples], label="newest processes")
        axes.plot(at, [sample.draining_bytes / 2**20 for sample in samples], label="draining processes", alpha=0.5)
        axes.plot(at, [sample.parent_bytes / 2**20 for sample in samples], label="parent")
        axes.plot(at, [sample.long_lived_bytes / 2**20 for sample in samples], label="long-lived process")
        for disturbance in disturbances:
            begin, end = disturbance.begin_s / 60, disturbance.end_s / 60
            axes.axvspan(begin, end, color=colours[disturbance.target], alpha=0.25)
        streams = axes.twinx()
        streams.plot(at, [sample.live for sample in samples], linestyle=":", color="black", label="streams")
        streams.set_ylabel("streams (dotted)")
        streams.set_ylim(bottom=0)
        axes.set_xlabel("minutes (grey: processes replaced; blue, red: PostgreSQL, Valkey unavailable)")
        axes.set_ylabel("MiB")
        axes.set_ylim(bottom=0)
        axes.legend(loc="lower left")


def _rates(
    figures: Figures, of: Callable[[tuple[float, int, float, int]], float]
) -> tuple[list[float], list[float]]:
    pairs = list(zip(figures.timeline, figures.timeline[1:], strict=False))
    steps = [(a, b) for a, b in pairs if b[0] > a[0]]
    return [b[0] for _, b in steps], [(of(b) - of(a)) / (b[0] - a[0]) for a, b in steps]
