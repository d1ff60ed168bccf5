"""Every attempt is stored as one row with its outcome, usage and cost."""

from decimal import Decimal

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.peers.sse_client import all_events
from tests.running.servers import Server

COLUMNS = "stage, strategy, vendor, outcome, input_unit, output_unit, price, usage_source"


async def rows(server: Server) -> list[tuple]:
    async with server.services.database.connection() as conn:
        found = await conn.fetch(f"select {COLUMNS} from attempts order by created_at, stream_id, number")
    return [tuple(row) for row in found]


async def test_each_attempt_of_a_turn_is_stored(talk: Talk, strategy, server: Server) -> None:
    await strategy("bad", "refuse:503", price={"input": 0.5, "output": 1})
    await strategy("good", "say:Here I am", price={"input": 0.000002, "output": 0.00001})
    await talk.turn("Hello", "bad", "unknown", "good")
    assert await rows(server) == [
        ("llm", "bad", "vendor_b_llm", "failed", 0, 0, Decimal(0), "estimated"),
        ("llm", "unknown", "none", "failed", 0, 0, Decimal(0), "estimated"),
        ("llm", "good", "vendor_b_llm", "won", 7, 3, Decimal("0.000044"), "vendor"),
    ]


async def test_usage_of_a_truncated_answer_is_estimated(talk: Talk, strategy, server: Server) -> None:
    await strategy("cut", "cut:Half an answer", price={"input": 1, "output": 1})
    await talk.turn("Hello you", "cut")
    assert await rows(server) == [
        ("llm", "cut", "vendor_b_llm", "failed", 3, 4, Decimal(7), "estimated"),
    ]
    assert (await talk.history())["conversation"]["record_token"] == 7


@pytest.mark.usefixtures("local_vendors")
async def test_speech_usage_counts_code_points(talk: Talk, server: Server) -> None:
    value = {"account": "local-audio", "model": "espeak", "voice": "en-us", "price": {"input": 0.01}}
    await server.services.configs.put("default", "speech", "priced", value, author="test", origin=COMMAND)
    async with talk.post("/bp/ai/audio/tts", json={"text": "Hello.", "strategies": ["priced"]}) as response:
        seen = await all_events(response)
    assert seen[-1].name == "end"
    assert await rows(server) == [("tts", "priced", "local_audio", "won", 6, 0, Decimal("0.06"), "vendor")]
