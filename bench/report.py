"""Write the figures of a comparison into the report, between its marks, and its plots into the same directory."""

from pathlib import Path
from typing import TYPE_CHECKING

from bench.generated_section import write_between

if TYPE_CHECKING:
    from bench.versus import SuiteResult

_BEGIN, _END = "<!-- figures: written by bench.versus -->", "<!-- /figures -->"


def write_report(path: Path, result: "SuiteResult", *, command: str) -> None:
    """Replace the figures in `path`, and write the plots to the directory `plots` beside it."""
    write_between(path, (_BEGIN, _END), _figures(path.parent / "plots", result, command))


def _figures(folder: Path, result: "SuiteResult", command: str) -> str:
    pictures = _pictures(folder, result)
    parts = [
        f"\n`{command}`\n\n{result.machine}.\n",
        result.summary(),
        "".join(f"![{path.stem}](plots/{path.name})\n" for path in pictures),
        f"Every run:\n\n{result.details()}",
    ]
    if (profile := result.profile) is not None:
        parts.append(
            f"Profile (cProfile) of {profile.load}; {profile.us_per_delta:.1f} µs of CPU per delta without cProfile"
            f"{'' if profile.quiet else ' (other processes used the core: times include waiting for it)'}:\n\n"
            f"{profile.table()}"
        )
    return "\n".join(parts) + "\n"


def _pictures(folder: Path, result: "SuiteResult") -> list[Path]:
    from bench.plots import bars, latencies, over_time  # noqa: PLC0415 - slow to import, and most runs have no report

    names = ("cpu-per-delta", "cpu-per-conversation", "first-chunk", "over-time")
    paths = [folder / f"{name}.png" for name in names]
    by_delta = {
        row.row.load.name.replace(", ", "\n"): {figures.target: figures.us_per_delta for figures in row.rounds[-1]}
        for row in result.rows
        if row.row.measure == "delta"
    }
    bars(paths[0], "CPU of the target per delta (last round)", "µs", by_delta)
    by_stream = {
        row.row.load.name.replace(", ", "\n"): {figures.target: figures.us_per_stream for figures in row.rounds[-1]}
        for row in result.rows
        if row.row.measure == "stream"
    }
    bars(paths[1], "CPU of the target per conversation (last round)", "µs", by_stream)
    late = [row for row in result.rows if row.row.measure == "lateness"]
    spreads = {figures.target: figures.first_output for row in late for figures in row.rounds[-1]}
    latencies(paths[2], "Time from when a stream is due to its first chunk (last round)", spreads)
    paced = [row for row in result.rows if "paced" in row.row.load.name and "unpaced" not in row.row.load.name]
    over_time(paths[3], paced[-1].row.load.name, paced[-1].rounds[-1])
    return paths
