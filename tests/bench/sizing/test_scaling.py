"""Several nodes are compared with one, and with relays that share nothing but the core."""

from pathlib import Path

import pytest

from bench.scaling.report import passed, summary
from bench.scaling.rounds import Round, TargetName, grouped
from tests.bench.test_report import figures_of
from tests.deploy.commands import command


def rounds_of(target: TargetName, *cpu_s: float, failed: int = 0) -> list[Round]:
    """Return one round for each number of nodes, which take this CPU time for the same streams."""
    faults = {"lost": failed} if failed else {}
    return [
        Round(target, number + 1, figures_of(target, cpu_s=each, faults=faults), 140, 0.001, 0.002)
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
