"""Every fault of a vendor or a caller at every stage has the documented outcome and leaves no call open."""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from bench.failover.callers import judge_caller
from bench.failover.cells import (
    CLOSED_BY_SERVER,
    VENDOR_STAGES,
    CallerCell,
    Cell,
    NotPossible,
    Outcome,
    Row,
    caller_cells,
    cells,
)
from bench.failover.judge import judge
from bench.failover.testbed import FaultTestbed, open_testbed
from tests.running.servers import ADMIN_TOKEN, Databases, new_server
from vendors.sandbox.dns import Names, dns_server
from vendors.sandbox.server import listening

WORKERS = 2
"""How many workers of the tests share the cells. One would still be busy when all others have finished."""
CELLS = [cell for cell in cells() if not isinstance(cell.expected, NotPossible)]
CALLER_CELLS = [cell for cell in caller_cells() if not isinstance(cell.expected, NotPossible)]


def one_in_six(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of all runs: each fault at each stage and position, with a sixth of the vendors, in turn.

    `make soak` and `make bench-failover` run the others too.
    """
    alike = defaultdict(list)
    for cell in cells:
        alike[cell.row.name, cell.position, cell.vendor_stage.stage].append(cell)
    return [cell for number, group in enumerate(alike.values()) for cell in group[number % len(group) :: 6]]


IN_ALL_RUNS = {cell.name for cell in one_in_six(CELLS)}


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FaultTestbed]:
    """One server and one sandbox for all cells. Each cell has its own configs."""
    async with AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(listening())
        names = await stack.enter_async_context(dns_server(Names()))
        data_dir = tmp_path_factory.mktemp("data")
        server = await stack.enter_async_context(
            new_server(databases, data_dir, seeded=False, dns_servers=(names,))
        )
        yield await stack.enter_async_context(open_testbed(server.url, ADMIN_TOKEN, sandbox, VENDOR_STAGES))


def shared(possible: Sequence[Cell | CallerCell], chosen: AbstractSet[str]) -> list[Any]:
    """Return the parameters of a test of these cells. Only a soak has those that are not `chosen`, by name."""
    groups = (pytest.mark.xdist_group(f"faults {number}") for number in cycle(range(WORKERS)))
    return [
        pytest.param(cell, marks=[group] if cell.name in chosen else [group, pytest.mark.soak], id=cell.name)
        for cell, group in zip(possible, groups, strict=False)
    ]


@pytest.mark.parametrize("cell", shared(CELLS, IN_ALL_RUNS))
async def test_a_fault_of_a_vendor_has_the_outcome_in_the_table(testbed: FaultTestbed, cell: Cell) -> None:
    await testbed.configure(cell)
    assert await judge(testbed, cell) == []


@pytest.mark.parametrize("cell", shared(CALLER_CELLS, {cell.name for cell in CALLER_CELLS}))
async def test_caller_faults_leave_no_call_open(testbed: FaultTestbed, cell: CallerCell) -> None:
    await testbed.configure_slow(cell)
    assert await judge_caller(testbed, cell) == []


@pytest.mark.xdist_group("faults 0")
@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ({"llm": (Outcome.BREAKS_OFF, Outcome.BREAKS_OFF)}, "the stream ended with"),
        ({"llm": (Outcome.NO_SPEECH, Outcome.NO_SPEECH)}, "no speech, and the stream ended with"),
        ({"calls": 1}, "2 calls, expected 1"),
        ({"ended": CLOSED_BY_SERVER}, "a call ended with fault"),
    ],
)
async def test_a_server_that_deviates_from_the_table_fails(testbed: FaultTestbed, wrong, reported: str) -> None:
    found = next(cell for cell in CELLS if cell.name == "llm.openai.503.before")
    row: Row = replace(found.row, name=f"503 {reported}".replace(",", ""), **wrong)
    cell = replace(found, row=row)
    await testbed.configure(cell)
    assert any(reported in what for what in await judge(testbed, cell))
