"""What happens to the nodes while the load runs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bench.nodes.network import Net
from bench.nodes.testbed import NodesTestbed

_NOTICED_S = 2
"""After this time the proxy sends requests to a new node."""
_DOWN_S = 1
VICTIM = 1
"""The node that is killed or cut off."""


@dataclass(frozen=True, slots=True)
class Times:
    """How long a node is cut off, and for how long streams are begun after a scenario."""

    cut_s: float
    after_s: float


async def roll(testbed: NodesTestbed, _times: Times) -> str:
    """Drain each node by SIGTERM and replace it by a new one, one after the other."""
    took = []
    for node in testbed.nodes:
        took.append(await testbed.drain(node))
        await testbed.start(node)
        await asyncio.sleep(_NOTICED_S)
    return f"the nodes drained in {', '.join(f'{seconds:.1f}' for seconds in took)} s"


async def kill(testbed: NodesTestbed, _times: Times) -> str:
    """Kill a node, and start it again."""
    await testbed.kill(VICTIM)
    await asyncio.sleep(_DOWN_S)
    await testbed.start(VICTIM)
    return "the node was killed, and started again at once"


async def _cut(testbed: NodesTestbed, times: Times, net: Net) -> str:
    testbed.network.cut(VICTIM, net)
    try:
        await asyncio.sleep(times.cut_s)
    finally:
        testbed.network.heal(VICTIM, net)
    return f"packets were dropped for {times.cut_s:.0f} s"


async def cut_valkey(testbed: NodesTestbed, times: Times) -> str:
    return await _cut(testbed, times, "valkey")


async def cut_postgres(testbed: NodesTestbed, times: Times) -> str:
    return await _cut(testbed, times, "postgres")


SCENARIOS: Mapping[str, Callable[[NodesTestbed, Times], Awaitable[str]]] = {
    "rolling": roll,
    "kill": kill,
    "cut-valkey": cut_valkey,
    "cut-postgres": cut_postgres,
}
