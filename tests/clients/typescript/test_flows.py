"""The flows that both clients share: what is done against a server, and what must be seen."""

import pytest

from tests.clients.cases import cases, named
from tests.clients.typescript.conftest import Configure
from tests.clients.typescript.flows import Given, go_through
from tests.clients.typescript.program import Program
from tests.running.servers import Server


@pytest.mark.parametrize("flow", **named(cases("flows")))
async def test_a_flow(program: Program, server: Server, strategy: Configure, flow: Given) -> None:
    for name, model in flow["strategies"].items():
        await strategy(name, model)
    await go_through(program, server, flow["steps"])
