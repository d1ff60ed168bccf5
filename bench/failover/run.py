"""Runs every fault of a vendor at every stage, and writes the scorecard."""

import asyncio
import os
import platform
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bench.failover.callers import judge_caller
from bench.failover.cells import (
    CALLER_STAGES,
    VENDOR_STAGES,
    CallerCell,
    Cell,
    Expected,
    NotPossible,
    caller_cells,
    cells,
)
from bench.failover.judge import judge
from bench.failover.testbed import FaultTestbed, open_testbed
from deploy.local import development
from deploy.running import Failed, running, until_ready, while_running
from deploy.stores import Stores, embedded_stores
from storage.postgres.migrate import migrate
from vendors.sandbox.dns import Names, dns_server
from vendors.sandbox.server import listening

_ROOT = Path(__file__).parents[2]
_REPORT = Path(__file__).with_name("report.md")
_READY_S = 60
_HEADING = "## Cells\n\n"

Judged = tuple[Expected, list[str]]


async def run(report_path: Path) -> int:
    began = time.monotonic()
    vendors: dict[str, Judged] = {}
    callers: dict[str, Judged] = {}
    async with _deployed() as testbed:
        async with asyncio.TaskGroup() as tasks:
            for vendor_stage in VENDOR_STAGES:
                own_cells = [cell for cell in cells() if cell.vendor_stage is vendor_stage]
                tasks.create_task(_run_cells(testbed, own_cells, vendors))
        async with asyncio.TaskGroup() as tasks:
            for vendor_stage in CALLER_STAGES:
                own_caller_cells = [cell for cell in caller_cells() if cell.vendor_stage is vendor_stage]
                tasks.create_task(_run_caller_cells(testbed, own_caller_cells, callers))
    report = _report(vendors, callers, time.monotonic() - began)
    print(report)
    write(report, report_path)
    return int(any(problems for _, problems in (*vendors.values(), *callers.values())))


async def _run_cells(testbed: FaultTestbed, own_cells: Iterable[Cell], results: dict[str, Judged]) -> None:
    for cell in own_cells:
        problems: list[str] = []
        if not isinstance(cell.expected, NotPossible):
            await testbed.configure(cell)
            problems = await judge(testbed, cell)
        results[cell.name] = (cell.expected, problems)


async def _run_caller_cells(
    testbed: FaultTestbed, own_cells: Iterable[CallerCell], results: dict[str, Judged]
) -> None:
    for cell in own_cells:
        problems: list[str] = []
        if not isinstance(cell.expected, NotPossible):
            await testbed.configure_slow(cell)
            problems = await judge_caller(testbed, cell)
        results[cell.name] = (cell.expected, problems)


@asynccontextmanager
async def _deployed() -> AsyncIterator[FaultTestbed]:
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as name:
        folder = Path(name)
        async with (
            embedded_stores(folder, durable=False) as stores,
            dns_server(Names()) as names,
            listening() as sandbox,
            _serving(folder, stores, names) as (url, admin_token),
            open_testbed(url, admin_token, sandbox, VENDOR_STAGES) as testbed,
        ):
            yield testbed


@asynccontextmanager
async def _serving(folder: Path, stores: Stores, names: tuple[str, int]) -> AsyncIterator[tuple[str, str]]:
    """Run a server that resolves vendor host names with the DNS server `names`. Yield its URL and admin token."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    await migrate(stores.database_url)
    env = development({"PARLEY_DATA_DIR": str(folder), "PORT": str(port), "PATH": os.defpath})
    env |= {"DATABASE_URL": stores.database_url, "REDIS_URL": stores.redis_url}
    env |= {"PARLEY_DNS": f"{names[0]}:{names[1]}"}
    url, command, path = f"http://127.0.0.1:{port}", [sys.executable, "-m", "app", "serve"], folder / "server.log"
    with path.open("wb") as log:
        async with running(command, stop_s=20, env=env, cwd=_ROOT, stdout=log, stderr=log) as server:
            try:
                await while_running({"the server": server}, asyncio.wait_for(until_ready(url), _READY_S))
            except (Failed, TimeoutError):
                sys.stderr.write(path.read_text())
                raise
            yield url, env["PARLEY_ADMIN_TOKEN"]


def write(report: str, path: Path) -> None:
    """Write the prose of the report in the repository with new results to `path`."""
    prose, _, _ = _REPORT.read_text().partition(_HEADING)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{prose}{_HEADING}{report}")
    print(f"\nwritten to {path}")


def _report(vendors: Mapping[str, Judged], callers: Mapping[str, Judged], seconds: float) -> str:
    """Return the result tables as Markdown."""
    reasons: dict[str, int] = {}
    all_results = {**vendors, **callers}
    run_results = [problems for expected, problems in all_results.values() if not isinstance(expected, NotPossible)]
    failed = sum(map(bool, run_results))
    verdict = f"{len(run_results) - failed} of {len(run_results)} cells pass, {failed} fail"
    lines = [
        (
            f"{verdict}, {len(all_results) - len(run_results)} are not possible. {seconds:.0f} s, "
            f"Python {platform.python_version()}."
        ),
        "",
        *_table(
            ["fault", "when", *(vendor_stage.name for vendor_stage in VENDOR_STAGES)],
            _vendor_rows(vendors, reasons),
        ),
        "",
        *_table(
            ["caller", *(vendor_stage.stage for vendor_stage in CALLER_STAGES)], _caller_rows(callers, reasons)
        ),
        "",
        "Not possible (n/a): " + "; ".join(f"{number} {reason}" for reason, number in reasons.items()) + ".",
        "",
        *(f"- {name} fails: {problem}" for name, (_, problems) in all_results.items() for problem in problems),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _vendor_rows(judged: Mapping[str, Judged], reasons: dict[str, int]) -> list[list[str]]:
    rows: dict[tuple[str, str], list[str]] = {}
    for cell in cells():
        row = rows.setdefault((cell.row.name, cell.position), [cell.row.name, cell.position])
        row.append(_cell_text(judged[cell.name], reasons))
    return list(rows.values())


def _caller_rows(judged: Mapping[str, Judged], reasons: dict[str, int]) -> list[list[str]]:
    rows: dict[str, list[str]] = {}
    for cell in caller_cells():
        row = rows.setdefault(cell.row.name, [cell.row.name])
        row.append(_cell_text(judged[cell.name], reasons))
    return list(rows.values())


def _cell_text(judged: Judged, reasons: dict[str, int]) -> str:
    expected, problems = judged
    if isinstance(expected, NotPossible):
        return f"n/a {reasons.setdefault(expected.reason, len(reasons) + 1)}"
    return "**fail**" if problems else expected
