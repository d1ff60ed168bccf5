"""A short run that measures what each kind of call costs."""

from pathlib import Path

import pytest

from bench.operations.__main__ import KINDS
from bench.sizing.__main__ import TABLES
from bench.sizing.figures import read_figures
from tests.deploy.commands import command


@pytest.mark.soak
async def test_all_kinds_of_calls_are_measured_and_reported(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    size = ("--calls", "8", "--deltas", "6", "--pace", "20")
    async with command("bench.operations", *size, "--idle", "3s", "--settle", "1s", "--report", str(report)) as run:
        async for _ in run:
            pass
        assert await run.process.wait() == 0, "\n".join(run.lines)
    measured = read_figures(report, TABLES)
    assert set(measured.costs) == {kind.name for kind in KINDS}
    turn, resumed = measured.costs["turn, new conversation"], measured.costs["turn, cut once and resumed"]
    assert turn["WAL B"] > 1000
    assert measured.costs["card payment: webhook and grant"]["statements"] > 10
    assert resumed["Valkey commands"] > turn["Valkey commands"] > 5
    assert measured.costs["turn, with speech"]["files B"] > turn["files B"] == 0
    assert measured.memory["turn, `durable`"]["while it runs"] > measured.memory["turn"]["while it runs"]
