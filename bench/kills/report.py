"""The report of a run: the verdicts and the figures, in Markdown."""

import platform
from collections import Counter
from pathlib import Path

from bench.figures import table
from bench.generated_section import write_between
from bench.kills.books import Books
from bench.kills.judge import Verdict
from bench.kills.run import Run

_BEGIN, _END = "<!-- kills: written by bench.kills -->", "<!-- /kills -->"
_MAX_MISSES = 30


def write_report(path: Path, run: Run, books: Books, verdicts: list[Verdict], *, command: str) -> None:
    """Write the tables between the marks in `path`."""
    content = f"\n`{command}`, Python {platform.python_version()}.\n\n{summary(run, books, verdicts)}\n\n"
    write_between(path, (_BEGIN, _END), content)


def passed(verdicts: list[Verdict]) -> bool:
    return not any(verdict.misses for verdict in verdicts)


def summary(run: Run, books: Books, verdicts: list[Verdict]) -> str:
    """Return the verdicts, followed by the figures."""
    rows = [[verdict.what, f"{verdict.seen:,}", f"{len(verdict.misses):,}"] for verdict in verdicts]
    misses = [f"- {miss}" for verdict in verdicts for miss in verdict.misses]
    return "\n".join(
        [
            "The run passed." if passed(verdicts) else "**The run failed.**",
            "",
            table(["check", "checked", "misses"], rows),
            _kills(run),
            "",
            _traffic(run),
            "",
            _repairs(run, books),
            *(["", "Misses:", "", *misses[:_MAX_MISSES]] if misses else []),
        ]
    )


def _kills(run: Run) -> str:
    made = run.kills.made
    return (
        f"{made.total():,} kills in {run.load_s / 60:.1f} minutes: {made['process']:,} of server processes, "
        f"{made['worker']:,} of workers, {made['parent']:,} of the parent of all server processes. "
        f"{run.kills.revived:,} times, the parent ended because a process was killed that had never been ready."
    )


def _traffic(run: Run) -> str:
    seen = run.observations
    return (
        f"{run.users:,} users, {run.callers} at a time, got {seen.answered.total():,} answers. "
        f"{seen.cut:,} requests lost their connection, and {seen.unavailable:,} were answered with 503. "
        f"{seen.repeated:,} were repeated, of which {seen.replayed:,} got the answer that the killed process had "
        f"stored, and {seen.given_up:,} were given up without an answer."
    )


def _repairs(run: Run, books: Books) -> str:
    channels = Counter(entry["channel"] for entry in books.rows["entries"] if entry["kind"] == "grant")
    grants = ", ".join(f"{count:,} by {channel}" for channel, count in channels.most_common())
    held = Counter(job["task_name"] for job in books.rows["jobs"] if job["status"] in {"failed", "aborted"})
    names = ", ".join(f"{count:,} {name}" for name, count in held.most_common()) or "none"
    return (
        f"Granted: {grants}. Nothing changed any more after the clock was moved {run.rounds} times. "
        f"Jobs that are held: {names}."
    )
