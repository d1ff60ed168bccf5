"""What the attempts say was used is what the vendors bill, whatever fails and whoever leaves."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientResponse

from tests.app.ai.conftest import Talk
from tests.app.ai.test_vendors import ROOTS
from tests.servers import Server
from tests.sse_client import events
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running, listening

SAID = " ".join(["one two six ten"] * 12)
"""Words that with their blank are four bytes long: the sandbox counts words, an estimate counts bytes / 4."""
CHAT_FAULTS = {
    "cut_mid_stream": 7,
    "error_inside_200": 3,
    "malformed_frame": 9,
    "server_error": 0,
    "rate_limited": 0,
    "empty_answer": 0,
}
"""After how many outputs they come."""
SPEECH_FAULTS = {"cut_mid_stream": 1, "server_error": 0, "rate_limited": 0, "unavailable": 0, "empty_answer": 0}
CALLS = {
    "vendor_b_llm": {"model": "gpt-4o-mini"},
    "vendor_b_audio": {"model": "tts-1", "voice": "alloy"},
}
LIMITS = {"resume_grace_s": 0.02, "rates": {"signup": {"count": 10**6, "per_s": 1}}}


@pytest.fixture
async def sandbox() -> AsyncIterator[Running]:
    async with listening() as running:
        yield running


async def make_all(server: Server, sandbox: Running, *, on_abandon: str) -> None:
    """Strategies that fail now and then, each in its own way, and a sound one of each kind."""
    await server.services.configs.put("default", "limits", "default", LIMITS, author="test")
    await make(server, sandbox, "vendor_b_llm", CHAT_FAULTS, on_abandon)
    await make(server, sandbox, "vendor_b_audio", SPEECH_FAULTS, on_abandon)


async def make(server: Server, sandbox: Running, platform: str, faults: dict[str, int], on_abandon: str) -> None:
    for name in [*faults, "sound"]:
        orders = {"fault": name, "position": faults[name], "rate": 0.05} if name in faults else {}
        key = key_of(text=SAID, pace_ms=1, seed=len(name), retry_after_s=0, **orders)
        account = {"platform": platform, "base_url": sandbox.url + ROOTS[platform], "api_key": key}
        await server.services.configs.put(
            "default", "vendor_accounts", f"{platform}-{name}", account, author="test"
        )
        call = {"account": f"{platform}-{name}", **CALLS[platform]}
        value = {"chat": call} if platform == "vendor_b_llm" else call
        kind = "conversation" if platform == "vendor_b_llm" else "speech"
        await server.services.configs.put("default", kind, name, {**value, "on_abandon": on_abandon}, author="test")


async def leaves_somewhere(response: ClientResponse, dice: random.Random) -> None:
    """Read on; two readers of five leave in the middle."""
    most = dice.randint(2, 30) if dice.random() < 0.4 else 10**6
    seen = 0
    async for _ in events(response):
        seen += 1
        if seen == most:
            response.close()
            return


async def ask_all(server: Server, *, streams: int, at_once: int) -> None:
    left = iter(range(streams))

    async def one_user(token: str) -> None:
        for nth in left:
            dice = random.Random(nth)  # noqa: S311 - the same every time
            talk = Talk(server, "", token)
            if nth % 4:
                request = talk.say("Who are you now", *dice.sample(list(CHAT_FAULTS), 3), "sound")
            else:
                strategies = [*dice.sample(list(SPEECH_FAULTS), 3), "sound"]
                body = {"text": "Good morning to you.", "strategies": strategies}
                request = talk.post("/bp/ai/audio/tts", json=body)
            async with request as response:
                await leaves_somewhere(response, dice)

    users = [(await server.login())[1] for _ in range(at_once)]
    await asyncio.gather(*(one_user(token) for token in users))
    await asyncio.wait_for(server.services.supervisor.idle(), 30)


def billed(sandbox: Running) -> Counter[str]:
    units: Counter[str] = Counter()
    for entry in sandbox.bill.since():
        assert entry.ended is not None, "a call is still open"
        units["calls"] += 1
        for unit, count in entry.billed.items():
            units[unit] += count
    return units


async def accounted(server: Server) -> Counter[str]:
    units: Counter[str] = Counter()
    async with server.services.database.connection() as conn:
        for row in await conn.fetch("select stage, input_unit, output_unit from attempts"):
            units["attempts"] += 1
            units["input_tokens" if row["stage"] == "llm" else "characters"] += row["input_unit"]
            units["output_tokens"] += row["output_unit"]
    return units


async def _compare(server: Server, sandbox: Running, *, on_abandon: str, streams: int, at_once: int) -> None:
    await make_all(server, sandbox, on_abandon=on_abandon)
    await ask_all(server, streams=streams, at_once=at_once)
    async with asyncio.timeout(5):
        while any(entry.ended is None for entry in sandbox.bill.since()):
            await sandbox.bill.wait()
            await asyncio.sleep(0)
    bill, rows = billed(sandbox), await accounted(server)
    assert rows["attempts"] >= streams
    for unit in ("input_tokens", "output_tokens", "characters"):
        tolerated = 0.05 * bill[unit] if on_abandon == "cancel" else 0
        assert bill[unit] > 0
        assert abs(bill[unit] - rows[unit]) <= tolerated, (unit, bill, rows)


async def test_streams_that_play_on_are_accounted_for_exactly(server: Server, sandbox: Running) -> None:
    await _compare(server, sandbox, on_abandon="drain", streams=80, at_once=8)


async def test_streams_that_are_cut_are_accounted_for_nearly(server: Server, sandbox: Running) -> None:
    await _compare(server, sandbox, on_abandon="cancel", streams=120, at_once=8)


@pytest.mark.soak
@pytest.mark.parametrize("on_abandon", ["drain", "cancel"])
async def test_a_thousand_attempts_are_accounted_for(server: Server, sandbox: Running, on_abandon: str) -> None:
    await _compare(server, sandbox, on_abandon=on_abandon, streams=1_000, at_once=20)


async def test_a_stream_that_nobody_reads_plays_on_where_its_strategy_says_so(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await make_all(server, sandbox, on_abandon="drain")
    response = await talk.say("Who are you now", "sound")
    talk.remember(response)
    await asyncio.wait_for(sandbox.bill.wait(lambda entry: entry.outputs > 0), 5)
    response.close()
    await asyncio.wait_for(server.services.supervisor.idle(), 10)
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == "complete"
    assert record["content"][1]["content"][0]["text"] == SAID
