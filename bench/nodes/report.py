"""The report of the scenarios: a table, and the misses."""

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from bench.figures import table
from bench.generated_section import write_between
from bench.nodes.judge import Judged
from bench.nodes.run import Plan

MARKS = ("<!-- nodes: written by bench.nodes -->", "<!-- /nodes -->")
_MAX_MISSES = 20
_HEADINGS = (
    "scenario", "streams begun", "ended whole", "resumed", "`error` on that node", "lost", "answered twice",
    "stream requests refused", "REST requests", "REST refused", "cut by the kill", "other errors",
    "REST p50 / p99 / max s",
)  # fmt: skip


def write_report(path: Path, plan: Plan, judged: Sequence[Judged], *, command: str) -> None:
    """Write the table between the marks in `path`."""
    write_between(path, MARKS, f"\n`{command}`\n\n{_machine()}.\n\n{summary(plan, judged)}\n")


def summary(plan: Plan, judged: Sequence[Judged]) -> str:
    """Return the table of all scenarios, followed by the misses."""
    passed = not any(one.misses for one in judged)
    lines = [
        "The run passed." if passed else "**The run failed.**",
        "",
        f"{plan.streams:,} streams at a time, and {plan.rest_callers} users of the other endpoints.",
        "",
        table(_HEADINGS, [_row(one) for one in judged]),
        *(
            f"- {one.run.scenario}: {one.run.happened}; {one.run.seconds:.0f} s in all.{_told(one)}"
            for one in judged
        ),
    ]
    for one in judged:
        if one.misses:
            lines += ["", f"Misses of {one.run.scenario}:", "", *(f"- {miss}" for miss in one.misses[:_MAX_MISSES])]
    return "\n".join(lines) + "\n"


def _row(one: Judged) -> list[str]:
    run = one.run
    counts = [
        len(run.observations.streams),
        one.whole,
        one.resumed,
        one.ended_with_node,
        len(one.lost),
        len(one.twice),
        one.refused,
        run.rest.answered.total(),
        run.rest.refused,
        one.cut,
        len(one.errors),
    ]
    return [run.scenario, *(f"{count:,}" for count in counts), _spread(run.rest.seconds)]


def _told(one: Judged) -> str:
    """Say how long clients waited until they were told that their stream has ended."""
    waits = sorted(s.end_s - s.cut_at_s[0] for s in one.run.observations.streams if s.unnumbered and s.cut_at_s)
    if not waits:
        return ""
    return f" Streams of the killed node ended {waits[0]:.0f} to {waits[-1]:.0f} s after they broke off."


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "-"
    ordered = sorted(seconds)
    return " / ".join(f"{ordered[min(len(ordered) - 1, int(len(ordered) * at))]:.2f}" for at in (0.5, 0.99, 1))


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    date = time.strftime("%d %B %Y", time.gmtime())
    return f"{date}: {os.cpu_count()} cores ({next(iter(names), 'unknown')}), Python {platform.python_version()}"
