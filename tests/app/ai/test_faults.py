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
    LANES,
    LEFT_BY_US,
    CallerCell,
    Cell,
    NotPossible,
    Outcome,
    Row,
    caller_cells,
    cells,
)
from bench.failover_judge import judge
from bench.failover_stand import Stand, standing
from deploy.stores import Stores
from tests.servers import ADMIN_TOKEN, MASTER_KEY, listening_socket, new_database, running_server
from vendors.sandbox.dns import Names, naming
from vendors.sandbox.server import listening

pytestmark = pytest.mark.asyncio(loop_scope="module")
CELLS = [cell for cell in cells() if not isinstance(cell.expected, NotPossible)]
CALLER_CELLS = [cell for cell in caller_cells() if not isinstance(cell.expected, NotPossible)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stand]:
    """One server and one sandbox for all cells: each has configs of its own."""
    async with AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(new_database(stores))
        listener = stack.enter_context(listening_socket())
        sandbox = await stack.enter_async_context(listening())
        names = await stack.enter_async_context(naming(Names()))
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
        yield await stack.enter_async_context(standing(server.url, ADMIN_TOKEN, sandbox, LANES))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
async def test_a_fault_of_a_vendor_ends_in_what_the_table_says(stand: Stand, cell: Cell) -> None:
    await stand.offer(cell)
    assert await judge(stand, cell) == []


@pytest.mark.parametrize("cell", CALLER_CELLS, ids=lambda cell: cell.name)
async def test_a_fault_of_a_caller_leaves_no_call_open(stand: Stand, cell: CallerCell) -> None:
    await stand.offer_slow(cell)
    assert await judge_caller(stand, cell) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"llm": (Outcome.BREAKS_OFF, Outcome.BREAKS_OFF)}, "it ended in"),
        ({"llm": (Outcome.NO_SPEECH, Outcome.NO_SPEECH)}, "no speech, and it ended in"),
        ({"calls": 1}, "2 calls, and there should be 1"),
        ({"ended": LEFT_BY_US}, "a call ended by fault"),
    ],
)
async def test_a_server_that_does_not_what_the_table_says_is_found_out(stand: Stand, wrong, told: str) -> None:
    found = next(cell for cell in CELLS if cell.name == "llm.openai.503.before")
    row: Row = replace(found.row, name=f"503 {told}".replace(",", ""), **wrong)
    cell = replace(found, row=row)
    await stand.offer(cell)
    assert any(told in what for what in await judge(stand, cell))
