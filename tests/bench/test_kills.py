"""A short run of the kills: its verdicts and its report."""

from pathlib import Path

import pytest

from tests.deploy.commands import command

MARKS = "Before\n\n<!-- kills: written by bench.kills -->\nfigures of another run\n<!-- /kills -->\n\nAfter\n"


@pytest.mark.soak
async def test_a_short_run_passes_and_is_reported(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    report.write_text(MARKS)
    size = ("--kills", "30", "--per-second", "1", "--parent-every", "10", "--processes", "5", "--callers", "20")
    async with command("bench.kills", *size, "--folder", str(tmp_path), "--report", str(report)) as run:
        async for _ in run:
            pass
        assert await run.process.wait() == 0, "\n".join(run.lines)
    text = report.read_text()
    assert "The run passed." in text
    assert "30 kills in" in text
    assert "another run" not in text
    assert not (tmp_path / "data").exists()
