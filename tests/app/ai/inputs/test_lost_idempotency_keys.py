"""A repeated request gets no second stream after Valkey lost its keys, on any process."""

from dataclasses import dataclass, field
from typing import Any

from tests.app.ai.conftest import Talk
from tests.app.ai.readers.two_servers import at, knows
from tests.peers.sse_client import all_events
from tests.peers.vendor import Vendor
from tests.running.another_server import another_server
from tests.running.servers import Server
from tests.waiting import until


async def flush(server: Server) -> None:
    """Delete all keys of this deployment, like FLUSHALL."""
    client = server.services.valkey.client
    names = [name async for name in client.scan_iter(f"{server.services.settings.redis_prefix}*", count=10_000)]
    await client.delete(*names)


@dataclass
class Requests:
    """Requests of a user with idempotency keys, and the responses that are streams."""

    open: list[Any] = field(default_factory=list)

    async def send(self, talk: Talk, key: str = "5b1f") -> str | None:
        """Send the request. Return the id of its stream, or `None` if it must be sent again."""
        body = talk.params("slow") + b"story"
        answer = await talk.post("/bp/ai/conversation", data=body, headers={"Idempotency-Key": key})
        if answer.status == 200:
            self.open.append(answer)
            return str(answer.headers["X-Service-Stream-Id"])
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        answer.release()
        return None

    async def until_answered(self, talk: Talk, stream_id: str) -> None:
        """Repeat the request until it is answered, which must be with this stream."""

        async def is_answered() -> bool:
            found = await self.send(talk)
            assert found in {None, stream_id}
            return found is not None

        await until(is_answered, every_s=0.02)


async def test_repeat_after_a_flush_is_unavailable_until_all_processes_have_registered_their_streams(
    talk: Talk, strategy, server: Server, other: Server, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await knows(other, "slow")
    requests = Requests()
    first = await requests.send(talk)
    assert first is not None
    await flush(server)
    async with another_server(server.services.settings) as newest:  # It has not seen the flush.
        await knows(newest, "slow")
        askers = [talk, at(other, talk), at(newest, talk)]
        for process in (newest, other, server):
            for asker in askers:
                assert await requests.send(asker) in {None, first}
            await process.services.heartbeat.beat()
        for asker in askers:
            await requests.until_answered(asker, first)
        # The last process may still have to register its streams, so a new key is not answered at once.
        await until(lambda: requests.send(at(newest, talk), "other"))
        assert requests.open[-1].headers["X-Service-Stream-Id"] != first
        vendor.release.set()
        for answer in requests.open:
            assert (await all_events(answer))[-1].name == "end"
            answer.release()
