"""Every fault of a vendor or a caller at every stage: what the client sees, and that no call stays open."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from uuid import uuid4

import pytest
import pytest_asyncio
from pydantic import SecretStr

from app.services import open_services
from app.settings import Settings
from bench.failover_callers import judge_caller
from bench.failover_cells import (
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
from bench.failover_judge import judge
from bench.failover_testbed import FaultTestbed, open_testbed
from deploy.stores import Stores
from tests.servers import ADMIN_TOKEN, MASTER_KEY, listening_socket, new_database, running_server
from vendors.sandbox.dns import Names, dns_server
from vendors.sandbox.server import listening

pytestmark = pytest.mark.asyncio(loop_scope="module")
CELLS = [cell for cell in cells() if not isinstance(cell.expected, NotPossible)]
CALLER_CELLS = [cell for cell in caller_cells() if not isinstance(cell.expected, NotPossible)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FaultTestbed]:
    """One server and one sandbox for all cells: each has configs of its own."""
    async with AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(new_database(stores))
        listener = stack.enter_context(listening_socket())
        sandbox = await stack.enter_async_context(listening())
        names = await stack.enter_async_context(dns_server(Names()))
        port = listener.getsockname()[1]
        settings = Settings(
            database_url=database_url,
            redis_url=stores.redis_url,
            redis_prefix=f"test-{uuid4().hex}:",
            master_key=SecretStr(MASTER_KEY),
            admin_token=SecretStr(ADMIN_TOKEN),
            env="development",
            port=port,
            public_url=f"http://127.0.0.1:{port}",
            data_dir=tmp_path_factory.mktemp("data"),
            dns_servers=(names,),
        )
        services = await stack.enter_async_context(open_services(settings))
        server = await stack.enter_async_context(running_server(services, listener))
        yield await stack.enter_async_context(open_testbed(server.url, ADMIN_TOKEN, sandbox, VENDOR_STAGES))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
async def test_a_fault_of_a_vendor_ends_in_what_the_table_says(stand: FaultTestbed, cell: Cell) -> None:
    await stand.configure(cell)
    assert await judge(stand, cell) == []


@pytest.mark.parametrize("cell", CALLER_CELLS, ids=lambda cell: cell.name)
async def test_a_fault_of_a_caller_leaves_no_call_open(stand: FaultTestbed, cell: CallerCell) -> None:
    await stand.configure_slow(cell)
    assert await judge_caller(stand, cell) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"llm": (Outcome.BREAKS_OFF, Outcome.BREAKS_OFF)}, "the stream ended with"),
        ({"llm": (Outcome.NO_SPEECH, Outcome.NO_SPEECH)}, "no speech, and the stream ended with"),
        ({"calls": 1}, "2 calls, expected 1"),
        ({"ended": CLOSED_BY_SERVER}, "a call ended with fault"),
    ],
)
async def test_a_server_that_does_not_what_the_table_says_is_found_out(
    stand: FaultTestbed, wrong, told: str
) -> None:
    found = next(cell for cell in CELLS if cell.name == "llm.openai.503.before")
    row: Row = replace(found.row, name=f"503 {told}".replace(",", ""), **wrong)
    cell = replace(found, row=row)
    await stand.configure(cell)
    assert any(told in what for what in await judge(stand, cell))
