"""Several nodes are compared with one, and with relays that share nothing but the core."""

from pathlib import Path

import pytest

from bench.arrivals import Result
from bench.client import Sample, Stream
from bench.figures import Figures, figures
from bench.machine import Cores, Counters, Usage
from bench.scaling.report import passed, summary
from bench.scaling.rounds import Round, TargetName, grouped
from bench.scenarios import Load
from tests.deploy.commands import command


def figures_of(target: TargetName, *, cpu_s: float, failed: int) -> Figures:
    """Return the figures of ten streams that have ended, and of some that were lost."""
    streams = [Stream(0, events=5, outcome="end") for _ in range(10)] + [Stream(0, fault="lost")] * failed
    before, after = (Counters(at, {0: [at] * 8}, Usage(at * cpu_s, 0, 1), 0) for at in (0, 1))
    result, core = Result(0, 1, streams, Sample()), frozenset({0})
    return figures(Load("a load", ["20x0"]), result, before, after, Cores(core, core), target=target, deltas=20)


def rounds_of(target: TargetName, *cpu_s: float, failed: int = 0) -> list[Round]:
    """Return one round for each number of nodes, which take this CPU time for the same streams."""
    return [
        Round(target, number + 1, figures_of(target, cpu_s=each, failed=failed), 140, 0.001, 0.002)
        for number, each in enumerate(cpu_s)
    ]


@pytest.mark.parametrize(
    ("nodes", "relays", "verdict", "passes"),
    [
        ((1.0, 1.1), (1.0, 1.0), "within 10%", True),
        ((1.0, 1.2), (1.0, 1.2), "within 10% of relays", True),
        ((1.0, 1.2), (1.0, 1.0), "no", False),
    ],
)
def test_nodes_may_lose_a_tenth_of_what_relays_keep(
    nodes: tuple[float, ...], relays: tuple[float, ...], verdict: str, passes: bool
):
    groups = grouped([*rounds_of("Parley", *nodes), *rounds_of("relay", *relays)])

    assert f"| {verdict} |\n" in summary(groups, machine="", command="")
    assert passed(groups) is passes


def test_a_failed_stream_fails_the_run_and_is_reported():
    groups = grouped([*rounds_of("Parley", 1.0, 1.0, failed=1), *rounds_of("relay", 1.0, 1.0)])

    assert not passed(groups)
    assert "- failed: lost" in summary(groups, machine="", command="")


def test_rounds_are_compared_with_one_node_of_the_same_round():
    """The machine is half as fast in the second round."""
    rounds = [*rounds_of("Parley", 1.0, 1.0), *rounds_of("Parley", 2.0, 2.0), *rounds_of("relay", 1.0, 1.0)]

    groups = grouped(rounds)

    assert [group.ratios for group in groups if group.target == "Parley"] == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.soak
async def test_a_short_run_is_reported(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    size = ("--nodes", "1", "2", "--rounds", "1", "--for", "500ms")
    async with command("bench.scaling", *size, "--report", str(report)) as run:
        async for _ in run:
            pass
        await run.process.wait()  # So short a run may miss the target.
    text = report.read_text()
    assert "- failed" not in text
    for target in ("Parley", "relay"):
        for load in ("20 deltas, unpaced", "100 deltas, unpaced"):
            assert f"| {target} | {load} | 1 |" in text
            assert f"| {target} | {load} | 2 |" in text
