"""Many conversations at once over vendors that fail now and then: each ends, and nothing of them remains."""

import asyncio
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.app.ai.conftest import Talk
from tests.servers import Server
from tests.sse_client import all_events, named
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import listening


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def converse_many(server: Server, users: list[str], streams: int, strategies: list[str]) -> Counter[str]:
    """So many streams, as many at once as there are users; how they ended."""
    ended: Counter[str] = Counter()
    left = iter(range(streams))

    async def one_user(token: str) -> None:
        talk = Talk(server, "", token)
        for _ in left:
            async with talk.say("Tell me a story", *strategies) as response:
                seen = await all_events(response)
            assert [event.id for event in seen if event.id] == list(range(1, seen[-1].id + 1))
            ended[seen[-1].name] += 1
            if seen[-1].name == "end":
                text = "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk"))
                assert seen[-1].content["digest"]["chars"] == len(text)

    await asyncio.gather(*(one_user(token) for token in users))
    return ended


async def _run(server: Server, *, at_once: int, streams: int) -> None:
    configs = server.services.configs
    await configs.put(
        "default", "limits", "default", {"rates": {"signup": {"count": 10**6, "per_s": 1}}}, author="t"
    )
    async with listening() as sandbox:
        for name, seed in (("first", 1), ("second", 2)):
            key = key_of(fault="cut_mid_stream", rate=0.05, seed=seed)
            account = {"platform": "vendor_b_llm", "base_url": f"{sandbox.url}/openai/v1", "api_key": key}
            await configs.put("default", "vendor_accounts", name, account, author="t")
            chat = {"account": name, "model": "gpt-4o-mini"}
            await configs.put("default", "conversation", name, {"chat": chat}, author="t")
        users = [(await server.login())[1] for _ in range(at_once)]
        await converse_many(server, users, at_once, ["first", "second"])  # so that connections are open
        before = descriptors()
        ended = await converse_many(server, users, streams, ["first", "second"])
        assert ended.total() == streams
        assert set(ended) <= {"end", "error"}
        await server.services.supervisor.idle()
        assert descriptors() <= before + 2 * at_once  # idle connections, fewer than one for each stream
        assert all(entry.ended is not None for entry in sandbox.bill.since(0))
    async with server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from conversation_records where status = 'running'") == 0
    keys = await server.services.valkey.client.keys(f"{server.services.settings.redis_prefix}*turn*")
    assert keys == []


async def test_twenty_conversations_at_once_all_end(server: Server) -> None:
    await _run(server, at_once=20, streams=60)


@pytest.mark.soak
async def test_five_hundred_conversations_at_once_all_end(server: Server) -> None:
    await _run(server, at_once=int(os.environ.get("PARLEY_SOAK_STREAMS", "500")), streams=5_000)  # noqa: TID251
