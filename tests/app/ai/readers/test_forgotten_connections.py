"""A subscription whose packets are dropped looks alive, but a reader on another node must still find its stream."""

import pytest

from storage.valkey import subscriptions
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.two_servers import at, knows
from tests.app.valkey_proxy import ValkeyProxy, settings, valkey_proxy
from tests.peers.sse_client import events
from tests.running.servers import Server
from tests.waiting import until

__all__ = ["settings", "valkey_proxy"]


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscriptions are checked often, from the start of the servers on."""
    monkeypatch.setattr(subscriptions, "_SILENCE_S", 0.05)
    monkeypatch.setattr(subscriptions, "_ANSWER_S", 0.5)


async def test_a_stream_is_resumed_elsewhere_after_a_firewall_has_forgotten_all_connections(
    talk: Talk, other: Server, strategy, valkey_proxy: ValkeyProxy
) -> None:
    await strategy("slow", "slow:Once upon a time", waits={"between_s": 120})
    await knows(other, "slow")
    async with talk.say("story", "slow") as said:
        first = await anext(events(said))
        valkey_proxy.forget_connections()
        again, path = at(other, talk), f"/bp/ai/stream/{said.headers['X-Service-Stream-Id']}"

        async def resumed() -> bool:
            async with again.get(path) as answer:
                return answer.status == 200 and (await anext(events(answer))).id == first.id

        await until(resumed, within_s=20)
