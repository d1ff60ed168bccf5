"""Figures are judged by their targets, and written between the marker lines of the report."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench.arrivals import Result
from bench.client import Sample, Stream
from bench.figures import GENERATOR_BOUND, Figures, Spread, figures
from bench.figures import row as line
from bench.machine import Cores, Counters, Usage
from bench.profiling import Line, Profile
from bench.report import write_report
from bench.targets import QUICK, Row
from bench.versus import Comparison, Memory, SuiteResult, judge_memory, judge_row
from tests.code.source_files import ROOT

pytestmark = pytest.mark.xdist_group("plots")  # One worker imports matplotlib.

PACED, _, FIRST, UNPACED, SHORT = QUICK.rows
CORES = Cores(frozenset({0}), frozenset({1}))


def figures_of(target: str = "Parley", **fields: object) -> Figures:
    spread = Spread.of([0.001, 0.002, 0.003])
    found = Figures(
        load="a load",
        target=target,
        seconds=2,
        streams=10,
        ended=10,
        errors={},
        faults={},
        read_in_full=1,
        events=1_000,
        deltas=1_000,
        first_event=spread,
        first_output=spread,
        gap=spread,
        longest_gap=spread,
        transit=spread,
        cpu_s=0.05,
        target_busy=0.95,
        target_core_busy=0.97,
        generator_core_busy=0.5,
        rss_bytes=0,
        timeline=[(0.0, 0, 0.0, 0), (0.25, 100, 0.1, 0), (0.5, 300, 0.3, 0)],
    )
    return replace(found, **fields)


def both(row: Row, ours: Figures, **fields: object) -> Comparison:
    return Comparison(row, [(ours, figures_of("baseline", **fields))])


@pytest.mark.parametrize(
    ("row", "cpu_s", "verdict"),
    [(PACED, 0.05, "met"), (PACED, 0.051, "missed"), (UNPACED, 0.07, "met"), (SHORT, 0.125, "met")],
)
def test_a_row_is_judged_by_its_ratio_to_the_baseline(row: Row, cpu_s: float, verdict: str):
    assert judge_row(both(row, figures_of(cpu_s=cpu_s))).verdict == verdict


def test_the_median_of_the_rounds_is_judged():
    rounds = [(figures_of(cpu_s=cpu_s), figures_of("baseline")) for cpu_s in (0.01, 0.2, 0.049)]

    found = judge_row(Comparison(PACED, rounds))

    assert (found.verdict, found.result) == ("met", "0.98")


def test_a_row_without_a_failure_is_missed_by_one():
    row = replace(PACED, no_failure=True)

    assert judge_row(both(row, figures_of())).verdict == "met"
    assert judge_row(both(row, figures_of(faults={"lost": 1}))).verdict == "missed"


@pytest.mark.parametrize(
    ("later_s", "busy", "verdict"),
    [(0.0009, 0.5, "met"), (0.0011, 0.5, "missed"), (0.0009, 0.7, "inconclusive")],
)
def test_a_first_chunk_is_judged_by_its_delay_over_the_baseline(later_s: float, busy: float, verdict: str):
    late = Spread.of(at + later_s for at in (0.001, 0.002, 0.003))
    ours = figures_of(first_output=late, generator_core_busy=busy)

    assert judge_row(both(FIRST, ours)).verdict.startswith(verdict)


def test_memory_is_judged_per_stream():
    assert judge_memory(Memory(0, 40 * 1024 * 10, 10, 0)).verdict == "met"
    assert judge_memory(Memory(0, 41 * 1024 * 10, 10, 0)).verdict == "missed"
    assert judge_memory(Memory(0, 0, 10, 1)).verdict == "missed"


def test_a_throughput_is_reported_only_if_the_target_was_saturated():
    assert "500" in line(figures_of())
    waiting = figures_of(target_busy=0.89, target_core_busy=0.89)
    assert GENERATOR_BOUND in line(waiting)
    assert "500" not in line(waiting)
    unknown = figures_of(target_busy=None, target_core_busy=None)
    assert "500" not in line(unknown)
    assert GENERATOR_BOUND not in line(unknown)


def test_figures_distinguish_ended_failed_and_broken_streams():
    streams = [
        Stream(1.0, events=5, first_event=1.01, first_output=1.02, last_event=1.1, outcome="end"),
        Stream(1.0, events=2, first_event=1.01, last_event=1.1, outcome="error backend_unavailable"),
        Stream(1.0, fault="lost"),
        Stream(1.0, fault="lost"),
    ]
    idle, busy = [0, 0, 0, 0, 0, 0, 0, 0], [50, 0, 0, 50, 0, 0, 0, 0]
    before = Counters(0, {0: idle, 1: idle}, Usage(1.0, 0, 1), 0)
    after = Counters(1, {0: busy, 1: busy}, Usage(1.5, 0, 1), 0)

    found = figures(PACED.load, Result(0, 2, streams, Sample()), before, after, CORES, target="Parley", deltas=100)

    assert (found.ended, found.errors, found.faults) == (1, {"backend_unavailable": 1}, {"lost": 2})
    assert (found.failed, found.events, found.deltas) == (3, 5, 100)
    assert (found.target_busy, found.target_core_busy) == (0.5, 0.5)
    assert found.first_output.at(50) == pytest.approx(20)


def test_the_limit_is_unknown_if_generator_and_target_share_cores():
    idle, busy = [0] * 8, [95, 0, 0, 5, 0, 0, 0, 0]
    before = Counters(0, {0: idle, 1: idle}, Usage(1.0, 0, 1), 0)
    after = Counters(1, {0: busy, 1: busy}, Usage(1.1, 0, 1), 0)
    everywhere = frozenset({0, 1})

    def limit(cores: Cores) -> str:
        return figures(PACED.load, Result(0, 2, [], Sample()), before, after, cores, target="Parley").bound

    assert limit(CORES) == "other processes"
    assert limit(Cores(everywhere, everywhere)) == "-"


def measured() -> SuiteResult:
    rows = [both(row, figures_of()) for row in QUICK.rows]
    parts = [Line("writing", 0.5, 10, 1)]
    return SuiteResult("a machine", Memory(0, 1024, 10, 0), rows, Profile("paced", 20, True, parts, parts))


def test_figures_are_replaced_and_the_prose_is_unchanged(tmp_path: Path):
    path = tmp_path / "report.md"
    path.write_text("# Before\n\n<!-- figures: written by bench.versus -->\nold\n<!-- /figures -->\n\nAfter\n")

    write_report(path, measured(), command="python -m bench.versus --full")
    once = path.read_text()
    write_report(path, measured(), command="python -m bench.versus --full")

    assert path.read_text() == once
    assert once.startswith("# Before\n")
    assert once.endswith("<!-- /figures -->\n\nAfter\n")
    assert "old" not in once
    assert "| paced, 50 at once | CPU per delta" in once
    assert "| writing | 50.0% | 10.00 | 1.00 |" in once
    pictures = {picture.name for picture in (tmp_path / "plots").iterdir()}
    assert len(pictures) == 4
    assert all(f"(plots/{name})" in once for name in pictures)


def test_a_report_without_marks_is_not_changed(tmp_path: Path):
    path = tmp_path / "report.md"
    path.write_text("# Mine\n")

    with pytest.raises(ValueError, match="has no line"):
        write_report(path, measured(), command="c")
    assert path.read_text() == "# Mine\n"


def test_every_generated_section_of_the_report_has_an_end() -> None:
    report = (ROOT / "bench/report.md").read_text()

    begun = re.findall(r"^<!-- (\w+): written by ", report, re.MULTILINE)
    assert re.findall(r"^<!-- /(\w+) -->$", report, re.MULTILINE) == begun != []
