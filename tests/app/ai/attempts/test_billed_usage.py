"""The usage in `attempts` equals what the vendors bill, also after failures and disconnects."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable

import pytest
from aiohttp import ClientResponse

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import ROOTS
from tests.peers.sse_client import events
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

SAID = " ".join(["one two six ten"] * 12)
ASKED = "Who are you now"
"""Words that are four bytes long with their space, like those of `SAID`.

The vendor does not report the usage of a call that is cut. It is estimated from the received bytes, one token for
each four. The sandbox bills one token for each word. Both counts are equal only for such words, which makes the
comparison exact. These tests do not show how good the estimate is for other texts.
"""
CHAT_FAULTS = {
    "cut_at_once": ("cut_mid_stream", 0),
    "cut": ("cut_mid_stream", 7),
    "error_at_once": ("error_inside_200", 0),
    "error": ("error_inside_200", 3),
    "malformed": ("malformed_frame", len(SAID.split())),  # Nothing is billed after the last word.
    "server_error": ("server_error", 0),
    "rate_limited": ("rate_limited", 0),
    "empty": ("empty_answer", 0),
}
"""Faults, and the number of outputs before each."""
SPEECH_FAULTS = {
    "cut_at_once": ("cut_mid_stream", 0),
    "cut": ("cut_mid_stream", 1),
    "server_error": ("server_error", 0),
    "rate_limited": ("rate_limited", 0),
    "unavailable": ("unavailable", 0),
    "empty": ("empty_answer", 0),
}
_RATE = 0.8
"""The share of the calls of a faulty strategy that fail."""
CALLS = {
    "vendor_b_llm": {"model": "gpt-4o-mini"},
    "anthropic": {"model": "claude-3-5-haiku-latest"},
    "gemini": {"model": "gemini-2.5-flash"},
    "vendor_b_audio": {"model": "tts-1", "voice": "alloy"},
    "vendor_a_audio": {"voice": "en-US-JennyNeural", "need_viseme": True},
    "vendor_c": {"model": "eleven_flash_v2_5", "voice": "21m00Tcm4TlvDq8ikWAM"},
}
CHATS = ("vendor_b_llm", "anthropic", "gemini")
VOICES = ("vendor_b_audio", "vendor_a_audio", "vendor_c")
LIMITS = {"resume_grace_s": 0.02, "rates": {"signup": {"count": 10**6, "per_s": 1}}}


async def make_all(server: Server, sandbox: Running, *, on_abandon: str) -> None:
    """Create strategies of every vendor that fail often, each with another fault, and a faultless one of each."""
    await server.services.configs.put("default", "limits", "default", LIMITS, author="test", origin=COMMAND)
    for platform in CALLS:
        await make(server, sandbox, platform, on_abandon)


async def make(server: Server, sandbox: Running, platform: str, on_abandon: str) -> None:
    kind, faults = ("conversation", CHAT_FAULTS) if platform in CHATS else ("speech", SPEECH_FAULTS)
    put = server.services.configs.put
    for seed, what in enumerate([*faults, "sound"]):
        name, key_options = f"{platform}-{what}", {}
        if what in faults:
            fault, position = faults[what]
            key_options = {"fault": fault, "position": position, "rate": _RATE}
        key = key_of(name=name, text=SAID, pace_ms=1, seed=seed, retry_after_s=0, **key_options)
        account = {"platform": platform, "base_url": sandbox.url + ROOTS[platform], "api_key": key}
        await put("default", "vendor_accounts", name, account, author="test", origin=COMMAND)
        call = {"account": name, **CALLS[platform]}
        value = {"chat": call} if kind == "conversation" else call
        await put("default", kind, name, {**value, "on_abandon": on_abandon}, author="test", origin=COMMAND)


def some_of(platforms: tuple[str, ...], faults: Iterable[str], rng: random.Random) -> list[str]:
    """Return faulty strategies of several vendors, followed by a faultless one."""
    faulty = [f"{rng.choice(platforms)}-{fault}" for fault in rng.sample(list(faults), 4)]
    return [*faulty, f"{rng.choice(platforms)}-sound"]


async def read_or_disconnect(response: ClientResponse, rng: random.Random) -> None:
    """Read the response; two of five readers disconnect in the middle."""
    most = rng.randint(2, 30) if rng.random() < 0.4 else 10**6
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
            rng = random.Random(nth)  # noqa: S311 - the same every time
            talk = Talk(server, "", token)
            if nth % 3:
                request = talk.say(ASKED, *some_of(CHATS, CHAT_FAULTS, rng))
            else:
                body = {"text": "Good morning to you.", "strategies": some_of(VOICES, SPEECH_FAULTS, rng)}
                request = talk.post("/bp/ai/audio/tts", json=body)
            async with request as response:
                await read_or_disconnect(response, rng)

    users = [(await server.login())[1] for _ in range(at_once)]
    await asyncio.gather(*(one_user(token) for token in users))
    await asyncio.wait_for(server.services.supervisor.idle(), 30)


Units = Counter[tuple[str, str]]
"""Return the billed usage by platform and unit."""


def billed(sandbox: Running) -> Units:
    units: Units = Counter()
    for entry in sandbox.bill.since():
        assert entry.ended is not None, "a call is still open"
        platform, _, _ = entry.key.partition("-")
        for unit, count in entry.billed.items():
            units[platform, unit] += count
    return units


async def accounted(server: Server) -> tuple[Units, int]:
    """Return the usage of the attempts, and how many of them were fallbacks."""
    units: Units = Counter()
    streams: Counter[str] = Counter()
    async with server.services.database.connection() as conn:
        for row in await conn.fetch("select stream_id, stage, strategy, input_unit, output_unit from attempts"):
            platform, _, _ = row["strategy"].partition("-")
            streams[row["stream_id"]] += 1
            units[platform, "input_tokens" if row["stage"] == "llm" else "characters"] += row["input_unit"]
            units[platform, "output_tokens"] += row["output_unit"]
    return units, streams.total() - len(streams)


async def _compare(server: Server, sandbox: Running, *, on_abandon: str, streams: int, at_once: int) -> None:
    await make_all(server, sandbox, on_abandon=on_abandon)
    await ask_all(server, streams=streams, at_once=at_once)
    async with asyncio.timeout(5):
        while any(entry.ended is None for entry in sandbox.bill.since()):
            await sandbox.bill.wait()
            await asyncio.sleep(0)
    bill, (rows, fallbacks) = billed(sandbox), await accounted(server)
    assert fallbacks >= streams * 0.75
    for platform in CALLS:
        for unit in ("input_tokens", "output_tokens") if platform in CHATS else ("characters",):
            charged, recorded = bill[platform, unit], rows[platform, unit]
            tolerated = 0.05 * charged if on_abandon == "cancel" else 0
            assert charged > 0, (platform, unit)
            assert abs(charged - recorded) <= tolerated, (platform, unit, charged, recorded)


async def test_usage_of_complete_streams_equals_the_bill(server: Server, sandbox: Running) -> None:
    await _compare(server, sandbox, on_abandon="drain", streams=48, at_once=8)


async def test_usage_of_cut_streams_is_close_to_the_bill(server: Server, sandbox: Running) -> None:
    await _compare(server, sandbox, on_abandon="cancel", streams=48, at_once=8)


@pytest.mark.soak
@pytest.mark.parametrize("on_abandon", ["drain", "cancel"])
async def test_usage_of_a_thousand_attempts_is_close_to_the_bill(
    server: Server, sandbox: Running, on_abandon: str
) -> None:
    await _compare(server, sandbox, on_abandon=on_abandon, streams=1_000, at_once=20)


async def test_a_stream_without_readers_continues_if_its_strategy_outlives_readers(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await make_all(server, sandbox, on_abandon="drain")
    response = await talk.say(ASKED, "vendor_b_llm-sound")
    talk.remember(response)
    await asyncio.wait_for(sandbox.bill.wait(lambda entry: entry.outputs > 0), 5)
    response.close()
    await asyncio.wait_for(server.services.supervisor.idle(), 10)
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == "complete"
    assert record["content"][1]["content"][0]["text"] == SAID
