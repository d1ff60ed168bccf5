"""The fault scorecard: every fault of a vendor at every stage, judged by the client's view and by the vendor's.

    python -m bench.failover            # or make bench-failover; writes what came of it to bench/failover.md

Starts all that it needs: stores, a server, the sandbox of vendors, a DNS server. Nothing leaves this machine.
Ends with 1 if a cell is a `fail`.
"""

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

from bench.failover_callers import judge_caller
from bench.failover_cells import (
    CALLER_LANES,
    LANES,
    CallerCell,
    Cell,
    Expected,
    NotPossible,
    caller_cells,
    cells,
)
from bench.failover_judge import judge
from bench.failover_stand import Stand, standing
from deploy.local import development
from deploy.running import Failed, running, until_ready, while_running
from deploy.stores import Stores, embedded_stores
from storage.migrate import migrate
from vendors.sandbox.dns import Names, naming
from vendors.sandbox.server import listening

_ROOT = Path(__file__).parents[1]
_REPORT = Path(__file__).with_suffix(".md")
_READY_S = 60
_HEADING = "## Cells\n\n"

Judged = tuple[Expected, list[str]]


async def main() -> int:
    began = time.monotonic()
    vendors: dict[str, Judged] = {}
    callers: dict[str, Judged] = {}
    async with _deployed() as stand:
        async with asyncio.TaskGroup() as tasks:
            for lane in LANES:
                mine = [cell for cell in cells() if cell.lane is lane]
                tasks.create_task(_play(stand, mine, vendors))
        async with asyncio.TaskGroup() as tasks:
            for lane in CALLER_LANES:
                theirs = [cell for cell in caller_cells() if cell.lane is lane]
                tasks.create_task(_play_callers(stand, theirs, callers))
    report = _report(vendors, callers, time.monotonic() - began)
    print(report)
    about, _, _ = _REPORT.read_text().partition(_HEADING)
    _REPORT.write_text(f"{about}{_HEADING}{report}")
    return int(any(wrong for _, wrong in (*vendors.values(), *callers.values())))


async def _play(stand: Stand, mine: Iterable[Cell], into: dict[str, Judged]) -> None:
    for cell in mine:
        wrong: list[str] = []
        if not isinstance(cell.expected, NotPossible):
            await stand.offer(cell)
            wrong = await judge(stand, cell)
        into[cell.name] = (cell.expected, wrong)


async def _play_callers(stand: Stand, mine: Iterable[CallerCell], into: dict[str, Judged]) -> None:
    for cell in mine:
        wrong: list[str] = []
        if not isinstance(cell.expected, NotPossible):
            await stand.offer_slow(cell)
            wrong = await judge_caller(stand, cell)
        into[cell.name] = (cell.expected, wrong)


@asynccontextmanager
async def _deployed() -> AsyncIterator[Stand]:
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as name:
        folder = Path(name)
        async with (
            embedded_stores(folder, durable=False) as stores,
            naming(Names()) as names,
            listening() as sandbox,
            _serving(folder, stores, names) as (url, admin_token),
            standing(url, admin_token, sandbox, LANES) as stand,
        ):
            yield stand


@asynccontextmanager
async def _serving(folder: Path, stores: Stores, names: tuple[str, int]) -> AsyncIterator[tuple[str, str]]:
    """A server of its own that asks `names` for the names of vendors; its URL and its operator's token."""
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


def _report(vendors: Mapping[str, Judged], callers: Mapping[str, Judged], seconds: float) -> str:
    """The tables, as Markdown."""
    reasons: dict[str, int] = {}
    every = {**vendors, **callers}
    played = [wrong for expected, wrong in every.values() if not isinstance(expected, NotPossible)]
    failed = sum(map(bool, played))
    right = f"{len(played) - failed} of {len(played)} cells are as they should be, {failed} fail"
    lines = [
        f"{right}, {len(every) - len(played)} cannot be. {seconds:.0f} s, Python {platform.python_version()}.",
        "",
        *_table(["fault", "comes", *(lane.name for lane in LANES)], _vendor_rows(vendors, reasons)),
        "",
        *_table(["caller", *(lane.stage for lane in CALLER_LANES)], _caller_rows(callers, reasons)),
        "",
        "Cannot be: " + "; ".join(f"{number} {reason}" for reason, number in reasons.items()) + ".",
        "",
        *(f"- fail, {name}: {what}" for name, (_, wrong) in every.items() for what in wrong),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _vendor_rows(judged: Mapping[str, Judged], reasons: dict[str, int]) -> list[list[str]]:
    rows: dict[tuple[str, str], list[str]] = {}
    for cell in cells():
        row = rows.setdefault((cell.row.name, cell.position), [cell.row.name, cell.position])
        row.append(_word(judged[cell.name], reasons))
    return list(rows.values())


def _caller_rows(judged: Mapping[str, Judged], reasons: dict[str, int]) -> list[list[str]]:
    rows: dict[str, list[str]] = {}
    for cell in caller_cells():
        row = rows.setdefault(cell.row.name, [cell.row.name])
        row.append(_word(judged[cell.name], reasons))
    return list(rows.values())


def _word(judged: Judged, reasons: dict[str, int]) -> str:
    expected, wrong = judged
    if isinstance(expected, NotPossible):
        return f"n/a {reasons.setdefault(expected.reason, len(reasons) + 1)}"
    return "**fail**" if wrong else expected


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
