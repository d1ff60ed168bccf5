"""The fault scorecard is written to the given path. By default it does not overwrite that of the repository."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.failover.run import write
from tests.code.source_files import ROOT

STORED = ROOT / "bench" / "failover" / "report.md"


def test_report_has_the_prose_of_the_repository_and_does_not_change_that_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    before = STORED.read_text()
    path = tmp_path / "build" / "report.md"
    write("1 of 1 cells pass\n", path)
    prose, _, cells = path.read_text().partition("## Cells\n\n")
    assert (cells, prose) == ("1 of 1 cells pass\n", before.partition("## Cells\n\n")[0])
    assert capsys.readouterr().out == f"\nwritten to {path}\n"
    assert STORED.read_text() == before


def test_report_is_written_to_build_by_default():
    command = [sys.executable, "-m", "bench.failover", "--help"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "--report FILE" in shown
    assert "default: build/failover.md" in shown
