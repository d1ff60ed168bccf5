"""A short soak: its output, files and report."""

import csv
from pathlib import Path

import pytest

from streams.wire.codec import loads
from tests.deploy.commands import command

MARKS = "Before\n\n<!-- soak: written by bench.soak -->\nfigures of another run\n<!-- /soak -->\n\nAfter\n"

UNSETTLED = "memory"
"""The memory targets. Half a minute is too short for the memory of processes to settle."""


@pytest.mark.soak
async def test_a_short_soak_misses_only_the_memory_target(tmp_path: Path):
    report = tmp_path / "report.md"
    report.write_text(MARKS)
    size = ("--minutes", "0.4", "--streams", "8", "--over", "1s", "--short")
    faults = ("--replace-every", "8s", "--fault-every", "16s")

    async with command("bench.soak", *size, *faults, "--folder", str(tmp_path), "--report", str(report)) as soak:
        async for _ in soak:
            pass
        await soak.process.wait()

    anomalies = [loads(line) for line in (tmp_path / "anomalies.jsonl").read_bytes().splitlines()]
    missed = {one["what"] for one in anomalies if one["miss"]}
    assert {what for what in missed if not what.startswith(UNSETTLED)} == set(), "\n".join(soak.lines)
    text = report.read_text()
    assert text.startswith("Before\n\n<!-- soak")
    assert text.endswith("<!-- /soak -->\n\nAfter\n")
    assert "another run" not in text
    assert "PostgreSQL pause at" in text
    assert "server replace at" in text
    assert (tmp_path / "plots/soak.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "samples.csv").open() as file:
        samples = list(csv.DictReader(file))
    assert max(int(sample["children_bytes"]) for sample in samples) > 0
    assert b'"event":"stream.ended"' in (tmp_path / "server.log").read_bytes()
    assert not (tmp_path / "data").exists()


@pytest.mark.soak
async def test_a_soak_that_is_ended_early_is_judged_and_written(tmp_path: Path):
    report = tmp_path / "report.md"
    report.write_text(MARKS)
    size = ("--minutes", "10", "--streams", "8", "--over", "1s", "--short", "--replace-every", "5s")

    async with command("bench.soak", *size, "--folder", str(tmp_path), "--report", str(report)) as soak:
        await soak.until("server replace from")
        soak.process.terminate()
        assert await soak.end() == 1, "memory was not measured for long enough"

    anomalies = [loads(line) for line in (tmp_path / "anomalies.jsonl").read_bytes().splitlines()]
    missed = {one["what"] for one in anomalies if one["miss"]}
    assert missed == {"memory: fewer than two windows were measured"}, "\n".join(soak.lines)
    assert "of 10.0 minutes." in report.read_text()
    assert not (tmp_path / "data").exists()
