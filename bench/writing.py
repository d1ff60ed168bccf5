"""The report: figures between its marks and their pictures, so that its prose stays."""

from pathlib import Path
from typing import TYPE_CHECKING

from bench.marks import write_between

if TYPE_CHECKING:
    from bench.versus import Measured

_BEGIN, _END = "<!-- figures: written by bench.versus -->", "<!-- /figures -->"


def write_report(path: Path, found: "Measured", *, command: str) -> None:
    """Put the figures into `path`, in place of those that are there, and the pictures beside it into `plots`."""
    write_between(path, (_BEGIN, _END), _figures(path.parent / "plots", found, command))


def _figures(folder: Path, found: "Measured", command: str) -> str:
    pictures = _pictures(folder, found)
    parts = [
        f"\n`{command}`\n\n{found.machine}.\n",
        found.summary(),
        "".join(f"![{path.stem}](plots/{path.name})\n" for path in pictures),
        f"Every run:\n\n{found.details()}",
    ]
    if (profile := found.profile) is not None:
        parts.append(
            f"Profile (cProfile) of {profile.load}, {profile.us_per_delta:.1f} µs of CPU per delta without it"
            f"{'' if profile.quiet else ' (others kept the cores busy: functions are told what they waited)'}:\n\n"
            f"{profile.table()}"
        )
    return "\n".join(parts) + "\n"


def _pictures(folder: Path, found: "Measured") -> list[Path]:
    from bench.plots import bars, latencies, over_time  # noqa: PLC0415 - it takes a second, and most runs have no report

    names = ("cpu-per-delta", "cpu-per-conversation", "first-chunk", "over-time")
    paths = [folder / f"{name}.png" for name in names]
    by_delta = {
        row.row.load.name.replace(", ", "\n"): {one.target: one.us_per_delta for one in row.rounds[-1]}
        for row in found.rows
        if row.row.measure == "delta"
    }
    bars(paths[0], "CPU of the target per delta (last round)", "µs", by_delta)
    by_stream = {
        row.row.load.name.replace(", ", "\n"): {one.target: one.us_per_stream for one in row.rounds[-1]}
        for row in found.rows
        if row.row.measure == "stream"
    }
    bars(paths[1], "CPU of the target per conversation (last round)", "µs", by_stream)
    late = [row for row in found.rows if row.row.measure == "lateness"]
    spreads = {one.target: one.first_output for row in late for one in row.rounds[-1]}
    latencies(paths[2], "From when a stream was due to its first chunk (last round)", spreads)
    paced = [row for row in found.rows if "paced" in row.row.load.name and "unpaced" not in row.row.load.name]
    over_time(paths[3], paced[-1].row.load.name, paced[-1].rounds[-1])
    return paths
