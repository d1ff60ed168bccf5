"""Complete streams are compared with transcript files, so that a changed order or field shows in a diff.

What differs from run to run (ids, times, links, how pieces were cut) is made equal first.
`PARLEY_WRITE_TRANSCRIPTS=1 pytest …` writes the files again.
"""

import os
import re
from itertools import groupby
from typing import Any

from streams.wire.codec import dumps
from tests.app.ai.conftest import Talk
from tests.code.source_files import ROOT
from tests.peers.sse_client import SeenEvent, all_events

FOLDER = ROOT / "tests" / "transcripts"
_VARYING = {"conversation_id", "audio_url", "viseme_url", "sha256", "latency_ms", "elapsed_ms", "audio", "visemes"}


def check(name: str, seen: list[SeenEvent]) -> None:
    lines = []
    for (event_name, index), group in groupby(seen, key=_kind):
        events = list(group)
        content = events[0].content
        if event_name == "assistant_output_chunk":
            content = {"index": index, "text": "".join(event.content["text"] for event in events)}
        lines.append(f"event: {event_name}\ndata: {dumps(_made_equal(content)).decode()}\n\n")
    reported = "".join(lines)
    path = FOLDER / f"{name}.sse"
    if os.environ.get("PARLEY_WRITE_TRANSCRIPTS"):  # noqa: TID251 - asked by whoever runs the tests
        path.write_text(reported)
    assert reported == path.read_text()


def _kind(event: SeenEvent) -> tuple[str, Any]:
    index = event.content.get("index") if isinstance(event.content, dict) else None
    return event.name, index


def _made_equal(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: f"<{name}>" if name in _VARYING else _made_equal(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_made_equal(item) for item in value]
    return re.sub(r"127\.0\.0\.1:\d+", "<host>", value) if isinstance(value, str) else value


async def test_typed_turn_has_the_expected_transcript(talk: Talk, strategy) -> None:
    await strategy("one", "say:First paragraph.\n\nSecond one, a little longer.")
    check("typed-turn", await talk.turn("Hello", "one"))


async def test_a_turn_of_failed_strategies_has_the_expected_transcript(talk: Talk, strategy) -> None:
    await strategy("bad", "refuse:503")
    await strategy("empty", "empty")
    check("all-failed", await talk.turn("Hello", "bad", "empty", "unknown"))


async def test_a_cut_answer_has_the_expected_transcript(talk: Talk, strategy) -> None:
    await strategy("cut", "cut:Half an answer")
    check("cut-turn", await talk.turn("Hello", "cut"))


async def test_text_to_speech_has_the_expected_transcript(talk: Talk, local_vendors: str) -> None:
    wish = {"platform": "local_audio", "need_viseme": False}
    body = {"text": "Hello.", "strategies": ["local"], "platform_params": [wish]}
    async with talk.post("/bp/ai/audio/tts", json=body) as response:
        check("text-to-speech", await all_events(response))
