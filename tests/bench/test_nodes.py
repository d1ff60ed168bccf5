"""A short run of all scenarios of several nodes: its verdict and its report."""

import os
import shutil
from pathlib import Path

import pytest

from tests.deploy.commands import command
from tests.deploy.proxies.haproxy import HAPROXY

MARKS = "Before\n\n<!-- nodes: written by bench.nodes -->\nfigures of another run\n<!-- /nodes -->\n\nAfter\n"
AVAILABLE = os.geteuid() == 0 and HAPROXY is not None and shutil.which("unshare") is not None


@pytest.mark.soak
@pytest.mark.skipif(not AVAILABLE, reason="needs root, haproxy and unshare")
async def test_no_stream_is_lost_while_nodes_are_replaced_killed_and_cut_off(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    report.write_text(MARKS)
    # Streams of 2 s: a node that drains faster than the proxy checks it would cut off requests.
    size = ("--streams", "30", "--rest", "4", "--model", "10x200", "--over", "500ms")
    times = ("--cut", "3s", "--after", "1s")
    async with command("bench.nodes", *size, *times, "--folder", str(tmp_path), "--report", str(report)) as run:
        async for _ in run:
            pass
        assert await run.process.wait() == 0, "\n".join(run.lines)
    text = report.read_text()
    assert "The run passed." in text
    assert "another run" not in text
    assert all(f"| {scenario} |" in text for scenario in ("rolling", "kill", "cut-valkey", "cut-postgres"))
    assert not (tmp_path / "data").exists()
