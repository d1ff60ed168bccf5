"""The flows that both clients share: what is done against a server, and what must be seen."""

import pytest

from tests.clients.cases import cases, named
from tests.clients.python.flows import go_through
from tests.running.servers import Server


@pytest.mark.parametrize("flow", **named(cases("flows")))
async def test_a_flow(server: Server, strategy, flow: dict) -> None:
    for name, model in flow["strategies"].items():
        await strategy(name, model)
    await go_through(server, flow["steps"])
