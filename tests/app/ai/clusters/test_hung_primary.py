"""A primary of a cluster that hangs without closing its connections, on which a process waits for messages."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from redis.crc import key_slot

from deploy.valkey_cluster import ClusterNode, ValkeyCluster
from tests.app.ai.clusters.asked import send
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.two_servers import at, knows
from tests.peers.sse_client import all_events
from tests.running.servers import Server
from tests.waiting import until

_WITHIN_S = 7
"""The replica takes over after 2 s, and the process finds out 3 s after its last message that no others come."""


@contextmanager
def hung(node: ClusterNode) -> Iterator[None]:
    assert node.process is not None
    node.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        node.process.send_signal(signal.SIGCONT)


async def test_a_process_receives_messages_again_soon_after_the_primary_of_its_channel_hangs(
    talk: Talk, strategy, *, other: Server, cluster: ValkeyCluster
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await knows(other, "slow")
    valkey, process = talk.server.services.valkey, talk.server.services.heartbeat.process
    async with await send(talk) as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        with hung(await cluster.owner_of(key_slot(valkey.channel(f"process:{process}").encode()))):
            await until(lambda: _is_cancelled(at(other, talk), stream_id), within_s=_WITHIN_S)
            assert (await all_events(response))[-1].content["finish_reason"] == "canceled"


async def _is_cancelled(talk: Talk, stream_id: str) -> bool:
    async with talk.delete(f"/bp/ai/stream/{stream_id}") as answer:
        return answer.status == 200
