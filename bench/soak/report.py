"""What a soak found, as Markdown and a picture."""

import platform
from collections import Counter
from pathlib import Path

from bench.figures import table
from bench.marks import write_between
from bench.plots import soaked
from bench.soak.judge import Judged, why_allowed
from bench.soak.run import Run
from bench.soak.samples import Window

_BEGIN, _END = "<!-- soak: written by bench.soak -->", "<!-- /soak -->"
_MIB = 2**20


def write_report(path: Path, run: Run, judged: Judged, *, command: str) -> None:
    """Put the tables between the marks in `path`, and the picture beside it into `plots`."""
    picture = path.parent / "plots" / "soak.png"
    soaked(picture, run.samples, run.disturbances.all)
    told = f"`{command}`, Python {platform.python_version()}."
    content = f"\n{told}\n\n{summary(run, judged)}\n\n![soak](plots/soak.png)\n\n"
    write_between(path, (_BEGIN, _END), content)


def summary(run: Run, judged: Judged) -> str:
    """The verdicts, then the figures behind them."""
    result = "All as it should be." if judged.passed else "**Something was missed.**"
    return "\n".join(
        [
            result,
            *_stopped(run),
            "",
            table(["what", "seen", "missed"], [[v.what, v.seen, str(v.misses)] for v in judged.verdicts]),
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


def _stopped(run: Run) -> list[str]:
    if run.over_s > run.plan.total_s - 1:
        return []
    return ["", f"Ended early, after {run.over_s / 60:.1f} of {run.plan.total_s / 60:.1f} minutes."]


def _streams(run: Run) -> str:
    """How streams ended, by kind."""
    kinds = list(dict.fromkeys(stream.kind for stream in run.notes.streams))
    rows = []
    for kind in sorted(kinds):
        streams = [stream for stream in run.notes.streams if stream.kind == kind]
        ended = sum(stream.outcome == "end" for stream in streams)
        errors = Counter(stream.outcome for stream in streams if stream.outcome != "end")
        told = ", ".join(f"{count:,} {name or 'without a terminal event'}" for name, count in errors.most_common())
        resumed = f"{sum(stream.resumes for stream in streams):,}"
        cut = f"{sum(len(stream.cut_at_s) for stream in streams):,}"
        rows.append([kind, f"{len(streams):,}", f"{ended:,}", told, cut, resumed])
    return table(["streams", "number", "`end`", "else", "cut by the server", "resumes"], rows)


def _load(run: Run) -> str:
    """What the load was, what was refused, what it cost."""
    reasons = Counter(why_allowed(answer, run.disturbances) or "failed" for answer in run.notes.answers)
    refused = ", ".join(f"{count:,} ({reason})" for reason, count in reasons.most_common()) or "none"
    last = run.samples[-1]
    live = sorted(sample.live for sample in run.samples if run.plan.over_s < sample.at_s < run.plan.total_s)
    middle = live[len(live) // 2] if live else 0
    return (
        f"{middle} streams at a time (median), {run.notes.events:,} events. Requests refused or failed: {refused}. "
        f"CPU: the server {last.server_cpu_s / last.at_s:.0%} of a core, the generator "
        f"{last.generator_cpu_s / last.at_s:.0%}."
    )


def _disturbed(run: Run) -> str:
    parts = [
        f"{one} at {one.begin_s / 60:.1f} min for {one.end_s - one.begin_s:.0f} s" for one in run.disturbances.all
    ]
    return f"What was done: {'; '.join(parts) or 'nothing'}."


def _memory(run: Run) -> str:
    """The windows in which memory is measured."""
    rows = [
        [
            f"{window.begin_s / 60:.1f} to {window.end_s / 60:.1f}",
            *(_mib(size) for size in _sizes(window)),
            f"{window.postgres_connections:.0f}" if window.postgres_connections >= 0 else "-",
            f"{window.descriptors:.0f}",
        ]
        for window in run.windows()
    ]
    sizes = ["processes MiB", "parent MiB", "never replaced MiB", "Valkey MiB"]
    headings = ["minutes", *sizes, "PostgreSQL connections", "descriptors"]
    return table(headings, rows)


def _sizes(window: Window) -> tuple[float, ...]:
    return window.children_bytes, window.parent_bytes, window.lone_bytes, window.valkey_bytes


def _mib(size_bytes: float) -> str:
    return f"{size_bytes / _MIB:,.1f}" if size_bytes >= 0 else "-"


def _misses(judged: Judged) -> list[str]:
    counts = Counter(anomaly.what for anomaly in judged.anomalies if anomaly.miss)
    if not counts:
        return []
    return ["", "Missed:", "", *(f"- {count:,}: {what}" for what, count in counts.most_common(30))]
