"""The load generator runs against a server by its URL, with its own users."""

import os
from pathlib import Path

import pytest

from bench.deployment import APP
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS
from storage.operators.audit import COMMAND
from tests.bench.conftest import Load
from tests.deploy.commands import command
from tests.running.servers import Server

pytestmark = pytest.mark.xdist_group("load")  # One worker starts the server and its vendor.


async def test_at_once_keeps_a_number_of_streams_open(load: Load):
    found = await load("--strategy", "6x2", "--at-once", "5", "--streams", "20")

    assert (found["streams"], found["ended"], found["faults"], found["errors"]) == (20, 20, {}, {})
    assert found["read_in_full"] == 20
    assert found["first_output"]["count"] == 20
    assert found["events"] >= 20 * 4
    assert found["transit"]["count"] >= 20
    assert found["gap"]["quantiles"] == sorted(found["gap"]["quantiles"])


async def test_rate_starts_streams_whether_or_not_earlier_ones_have_ended(load: Load):
    found = await load("--strategy", "6x2", "--rate", "100", "--arrivals", "even", "--for", "500ms")

    assert 40 <= found["streams"] <= 60
    assert found["ended"] == found["streams"]


@pytest.mark.parametrize(
    ("scenario", "strategy"), [("audio", "6x0"), ("tts", "6x2"), ("pronunciation", "bench"), ("text", "6x0")]
)
async def test_every_scenario_succeeds(load: Load, scenario: str, strategy: str):
    paced = ("--input-pace", "5ms", "--audio", "300ms")

    found = await load("--scenario", scenario, "--strategy", strategy, "--streams", "6", "--at-once", "3", *paced)

    assert (found["ended"], found["faults"], found["errors"]) == (6, {}, {})
    assert found["first_output"]["count"] == 6


async def test_several_generators_share_a_load(load: Load):
    found = await load("--strategy", "6x2", "--at-once", "4", "--streams", "21", "--processes", "2")

    assert (found["streams"], found["ended"], found["read_in_full"]) == (21, 21, 21)


async def test_a_report_contains_the_figures_and_plots(load: Load, tmp_path: Path):
    folder = tmp_path / "report"

    await load("--strategy", "6x2", "--streams", "4", "--report", str(folder))

    report = (folder / "report.md").read_text()
    assert "| text | Parley | 4 | 0 |" in report
    assert "`-`: unknown." in report
    for name in ("latencies.png", "over-time.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
        assert f"({name})" in report


async def test_a_missing_strategy_is_reported_as_a_failure(load: Load):
    found = await load("--strategy", "none", "--streams", "3", "--at-once", "1")

    assert found["ended"] == 0
    (fault,) = found["faults"]
    assert fault.startswith("404 ")
    assert found["faults"][fault] == 3


async def test_a_stream_without_an_end_times_out(load: Load, ready: Server):
    found = await load("--strategy", "held", "--streams", "2", "--timeout", "500ms")

    assert found["faults"] == {"no end in 0.5 s": 2}
    vendor = ready.services.configs.get(VENDOR_ACCOUNTS, APP, "llm").value.base_url.removesuffix("/v1")
    async with ready.http.post(f"{vendor}/release") as released:
        assert released.status == 200
    await ready.services.supervisor.idle()


async def test_streams_that_end_in_an_error_are_counted_by_its_type(load: Load, ready: Server):
    async with command("bench.upstream", "--failing", "1") as vendor:
        configs, url = ready.services.configs, f"http://127.0.0.1:{int(await vendor.until(''))}/v1"
        account = {"platform": "vendor_b_llm", "base_url": url, "api_key": "bench"}
        await configs.put(APP, "vendor_accounts", "failing", account, author="tests", origin=COMMAND)
        chat = {"chat": {"account": "failing", "model": "6x0"}}
        await configs.put(APP, "conversation", "failing", chat, author="tests", origin=COMMAND)
        found = await load("--strategy", "failing", "--streams", "12", "--at-once", "4")

    assert found["ended"] == 0
    assert found["faults"] == {}
    assert sum(found["errors"].values()) == 12
    assert set(found["errors"]) <= {"backend_unavailable", "all_strategies_failed"}


async def test_load_on_an_unreachable_server_fails_and_has_a_report(users: Path, tmp_path: Path):
    where = ("--url", "http://127.0.0.1:9", "--token-file", str(users), "--report", str(tmp_path))

    async with command("bench.load", *where) as generator:
        assert await generator.end() == 1

    assert any("100 failed: no connection" in line for line in generator.lines)
    assert "bench: none of 100 streams ended successfully" in generator.lines
    assert [line for line in generator.lines if "Warning" in line or "legend" in line] == []
    assert (tmp_path / "latencies.png").read_bytes().startswith(b"\x89PNG")
    assert "100 failed" in (tmp_path / "report.md").read_text()


def cells(lines: list[str]) -> dict[str, str]:
    """Return the only row of the printed table, by its headings."""
    headings, _, row = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|"))
    return dict(zip(headings, row, strict=True))


async def test_figures_that_are_unknown_for_a_remote_server_are_omitted(ready: Server, users: Path):
    where = ("--url", ready.url, "--token-file", str(users), "--strategy", "6x0", "--streams", "4")

    async with command("bench.load", *where) as generator:
        assert await generator.end() == 0

    row = cells(generator.lines)
    for heading in ("streams/s", "events/s", "limit", "µs/event", "µs/stream", "target CPU", "target core"):
        assert row[heading] == "-", heading
    assert row["generator core"].endswith("%")
    assert any(line.startswith("`-`: unknown.") for line in generator.lines)


async def test_cpu_time_of_a_local_server_is_reported_without_the_load_of_its_cores(ready: Server, users: Path):
    where = ("--url", ready.url, "--token-file", str(users), "--strategy", "6x0", "--streams", "40")

    async with command("bench.load", *where, "--pid", str(os.getpid())) as generator:
        assert await generator.end() == 0

    row = cells(generator.lines)
    assert row["target CPU"].endswith("%")
    assert row["µs/stream"] != "-"
    assert row["target core"] == "-"


async def test_users_log_in_if_no_token_file_is_given(ready: Server):
    where = ("--url", ready.url, "--strategy", "6x0", "--streams", "4", "--at-once", "2")

    async with command("bench.load", *where) as generator:
        assert await generator.end() == 0

    assert any(line.startswith("| text | Parley | 4 | 0 |") for line in generator.lines)


async def test_a_spawned_deployment_is_measured():
    load = ("--deltas", "4", "--pace", "2ms", "--streams", "8", "--at-once", "2")

    async with command("bench.load", "--spawn", *load) as generator:
        assert await generator.end() == 0, generator.lines

    assert any(line.startswith("| text | Parley | 8 | 0 |") for line in generator.lines)
