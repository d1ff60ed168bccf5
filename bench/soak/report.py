"""The report of a soak: Markdown tables and a plot."""

import platform
from collections import Counter
from pathlib import Path

from bench.figures import table
from bench.generated_section import write_between
from bench.soak.judge import Judged, why_allowed
from bench.soak.run import Run
from bench.soak.samples import Window

_BEGIN, _END = "<!-- soak: written by bench.soak -->", "<!-- /soak -->"
_MIB = 2**20


def write_report(path: Path, run: Run, judged: Judged, *, command: str) -> None:
    """Write the tables between the marks in `path`, and the plot to the directory `plots` next to it."""
    from bench.plots import plot_soak  # noqa: PLC0415 - slow to import, and most runs have no report

    picture = path.parent / "plots" / "soak.png"
    plot_soak(picture, run.samples, run.disturbances.all)
    heading = f"`{command}`, Python {platform.python_version()}."
    content = f"\n{heading}\n\n{summary(run, judged)}\n\n![soak](plots/soak.png)\n\n"
    write_between(path, (_BEGIN, _END), content)


def summary(run: Run, judged: Judged) -> str:
    """Return the verdicts, followed by the figures."""
    result = "The run passed." if judged.passed else "**The run failed.**"
    return "\n".join(
        [
            result,
            *_ended_early(run),
            "",
            table(["check", "measured", "misses"], [[v.what, v.seen, str(v.misses)] for v in judged.verdicts]),
            _streams(run),
            "",
            _load(run),
            "",
            _disturbed(run),
            "",
            _memory(run),
            *_misses(judged),
        ]
    )


def _ended_early(run: Run) -> list[str]:
    if run.load_end_s > run.plan.total_s - 1:
        return []
    return ["", f"Ended early, after {run.load_end_s / 60:.1f} of {run.plan.total_s / 60:.1f} minutes."]


def _streams(run: Run) -> str:
    """Return a table of the outcomes of streams by kind."""
    kinds = list(dict.fromkeys(stream.kind for stream in run.observations.streams))
    rows = []
    for kind in sorted(kinds):
        streams = [stream for stream in run.observations.streams if stream.kind == kind]
        ended = sum(stream.outcome == "end" for stream in streams)
        errors = Counter(stream.outcome for stream in streams if stream.outcome != "end")
        errors_text = ", ".join(
            f"{count:,} {name or 'without a terminal event'}" for name, count in errors.most_common()
        )
        resumed = f"{sum(stream.resumes for stream in streams):,}"
        broken_off = f"{sum(len(stream.cut_at_s) for stream in streams):,}"
        rows.append([kind, f"{len(streams):,}", f"{ended:,}", errors_text, broken_off, resumed])
    return table(["streams", "number", "`end`", "other outcomes", "broken off", "resumes"], rows)


def _load(run: Run) -> str:
    """Return a paragraph about the load, refused requests and CPU time."""
    reasons = Counter(why_allowed(answer, run.disturbances) or "failed" for answer in run.observations.answers)
    refused = ", ".join(f"{count:,} ({reason})" for reason, count in reasons.most_common()) or "none"
    last = run.samples[-1]
    live = sorted(sample.live for sample in run.samples if run.plan.over_s < sample.at_s < run.plan.total_s)
    middle = live[len(live) // 2] if live else 0
    return (
        f"{middle} streams at a time (median), {run.observations.events:,} events. "
        f"Requests refused or failed: {refused}. "
        f"CPU: the server {last.server_cpu_s / last.at_s:.0%} of a core, the generator "
        f"{last.generator_cpu_s / last.at_s:.0%}."
    )


def _disturbed(run: Run) -> str:
    parts = [
        f"{disturbance} at {disturbance.begin_s / 60:.1f} min for {disturbance.end_s - disturbance.begin_s:.0f} s"
        for disturbance in run.disturbances.all
    ]
    return f"Disturbances: {'; '.join(parts) or 'none'}."


def _memory(run: Run) -> str:
    """Return a table of the windows in which memory is measured."""
    rows = [
        [
            f"{window.begin_s / 60:.1f} to {window.end_s / 60:.1f}",
            *(_mib(size_bytes) for size_bytes in _sizes(window)),
            f"{window.postgres_connections:.0f}" if window.postgres_connections >= 0 else "-",
            f"{window.descriptors:.0f}",
        ]
        for window in run.windows()
    ]
    sizes = ["processes MiB", "parent MiB", "long-lived MiB", "Valkey MiB"]
    return table(["minutes", *sizes, "PostgreSQL connections", "descriptors"], rows)


def _sizes(window: Window) -> tuple[float, ...]:
    return window.children_bytes, window.parent_bytes, window.long_lived_bytes, window.valkey_bytes


def _mib(size_bytes: float) -> str:
    return f"{size_bytes / _MIB:,.1f}" if size_bytes >= 0 else "-"


def _misses(judged: Judged) -> list[str]:
    counts = Counter(anomaly.what for anomaly in judged.anomalies if anomaly.miss)
    if not counts:
        return []
    return ["", "Misses:", "", *(f"- {count:,}: {what}" for what, count in counts.most_common(30))]
