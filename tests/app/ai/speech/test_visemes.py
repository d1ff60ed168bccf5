"""Mouth shapes of every vendor: sent before their audio if the vendor sends times, and otherwise estimated."""

import base64
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from streams.audio.audio import pcm_seconds
from streams.audio.mp3 import mp3_duration_ms
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import VOICES, account
from tests.peers.sse_client import SeenEvent, all_events, named
from tests.running.servers import Server
from vendors.sandbox.content import speech_ms
from vendors.sandbox.server import Running
from vendors.speech.visemes import estimate

TIMED = ["vendor_a_audio", "vendor_c", "vendor_d_audio"]
TEXT = "Good morning to you all. How are you today? It is a fine day for a walk in the park."
ANSWER = f"{TEXT}\n\nShall we go? {TEXT}"
LATE_MS = {"wav": 1, "mp3": 120}
"""How late a shape may appear, because the vendors of the sandbox count the padding of an MP3 as speech."""


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def voice(server: Server, sandbox: Running, platform: str, **fields: Any) -> None:
    await account(server, sandbox, "voice", platform)
    value = {"account": "voice", "need_viseme": True, **VOICES[platform], **fields}
    await server.services.configs.put("default", "speech", "one", value, author="test", origin=COMMAND)


async def spoken(talk: Talk, text: str = TEXT, **params: Any) -> list[SeenEvent]:
    body: dict[str, Any] = {"text": text, "strategies": ["one"], **params}
    async with talk.post("/bp/ai/audio/tts", json=body) as response:
        seen = await all_events(response)
    assert seen[-1].name == "end", seen[-1]
    return seen


async def kept(talk: Talk, url: str) -> list[dict[str, int]]:
    async with talk.server.http.get(url) as response:
        assert response.status == 200
        return await response.json()


def length_ms(audio: bytes, chunk: dict[str, Any]) -> float:
    if chunk["mime_type"] == "audio/mpeg":
        return mp3_duration_ms(audio)
    return pcm_seconds(max(0, len(audio) - 44), chunk["sample_rate"]) * 1000


def shapes_in_time(seen: Sequence[SeenEvent], audio_name: str, *, late_ms: float) -> list[dict[str, int]]:
    """Return all shapes of one audio. Each must have been sent before its audio."""
    audio, first, shapes = b"", None, []
    for event in seen:
        if event.name == audio_name:
            first = first or event.content
            audio += base64.b64decode(event.content["audio"])
        elif event.name.endswith("viseme"):
            assert "estimated" not in event.content
            heard_ms = length_ms(audio, first) if first else 0
            assert event.content["visemes"]
            for shape in event.content["visemes"]:
                assert shape["offset_ms"] >= heard_ms - late_ms, (shape, heard_ms)
            shapes += event.content["visemes"]
    assert first is not None
    check(shapes, length_ms(audio, first) + late_ms)
    return shapes


def shapes_of(text: str, whole_ms: float) -> list[dict[str, int]]:
    return [{"offset_ms": one.offset_ms, "viseme_id": one.viseme_id} for one in estimate(text, int(whole_ms))]


def check(shapes: Sequence[dict[str, int]], max_ms: float) -> None:
    offsets = [shape["offset_ms"] for shape in shapes]
    assert offsets == sorted(offsets)
    assert offsets[-1] <= max_ms
    assert all(0 <= shape["viseme_id"] <= 21 for shape in shapes)
    assert len(shapes) > 20
    assert shapes[-1]["viseme_id"] == 0, "the mouth is closed at the end"


@pytest.mark.parametrize("platform", TIMED)
@pytest.mark.parametrize("audio_format", LATE_MS)
async def test_shapes_with_times_of_the_vendor_are_sent_before_their_audio(
    talk: Talk, server: Server, sandbox: Running, platform: str, audio_format: str
) -> None:
    await voice(server, sandbox, platform, audio_format=audio_format)
    seen = await spoken(talk)
    shapes = shapes_in_time(seen, "audio_chunk", late_ms=LATE_MS[audio_format])
    assert await kept(talk, named(seen, "audio")[0]["viseme_url"]) == shapes


@pytest.mark.parametrize("platform", TIMED)
@pytest.mark.parametrize("audio_format", LATE_MS)
async def test_shapes_of_each_paragraph_of_an_answer_are_sent_before_its_audio(
    talk: Talk, sandbox: Running, strategy, platform: str, audio_format: str
) -> None:
    await voice(talk.server, sandbox, platform, audio_format=audio_format)
    await strategy("answers", f"say:{ANSWER}", speech="one")
    seen = await talk.turn("Hello", "answers")
    assert "speech" not in seen[-1].content
    for index, reported in [(audio["index"], audio) for audio in named(seen, "assistant_output_audio")]:
        of_index = [e for e in seen if isinstance(e.content, dict) and e.content.get("index") == index]
        shapes = shapes_in_time(of_index, "assistant_output_audio_chunk", late_ms=LATE_MS[audio_format])
        assert await kept(talk, reported["viseme_url"]) == shapes


@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
async def test_shapes_are_estimated_and_sent_after_the_audio_if_the_vendor_sends_no_times(
    talk: Talk, server: Server, sandbox: Running, audio_format: str
) -> None:
    await voice(server, sandbox, "vendor_b_audio", audio_format=audio_format)
    seen = await spoken(talk)
    assert [name for name, _ in groupby(event.name for event in seen)] == [
        "start",
        "audio_chunk",
        "viseme",
        "audio",
        "end",
    ]
    (reported,) = named(seen, "viseme")
    assert reported["estimated"] is True
    chunks = named(seen, "audio_chunk")
    whole_ms = length_ms(b"".join(base64.b64decode(chunk["audio"]) for chunk in chunks), chunks[0])
    check(reported["visemes"], whole_ms)
    assert reported["visemes"] == shapes_of(TEXT, whole_ms)
    assert await kept(talk, named(seen, "audio")[0]["viseme_url"]) == reported["visemes"]


async def test_shapes_are_estimated_for_each_sentence_of_paragraphs_without_times(
    talk: Talk, server: Server, sandbox: Running, strategy
) -> None:
    await voice(server, sandbox, "vendor_b_audio", audio_format="wav")
    await strategy("answers", f"say:{ANSWER}", speech="one")
    seen = await talk.turn("Hello", "answers")
    assert "speech" not in seen[-1].content
    reported = named(seen, "assistant_output_viseme")
    assert [content["index"] for content in reported] == [0, 1]
    files = {content["index"]: content for content in named(seen, "assistant_output_audio")}
    names = [
        (event.name, event.content["index"])
        for event in seen
        if isinstance(event.content, dict) and "index" in event.content
    ]
    for content in reported:
        index = content["index"]
        chunks = [one for one in named(seen, "assistant_output_audio_chunk") if one["index"] == index]
        whole_ms = length_ms(b"".join(base64.b64decode(chunk["audio"]) for chunk in chunks), chunks[0])
        assert content["estimated"] is True
        check(content["visemes"], whole_ms + 1)
        position = names.index(("assistant_output_viseme", index))
        assert ("assistant_output_audio_chunk", index) not in names[position:]
        assert names.index(("assistant_output_audio", index)) > position
        assert await kept(talk, files[index]["viseme_url"]) == content["visemes"]
    assert len(list(sandbox.bill.since())) >= 3, "the first sentence was spoken alone"
    first = "Good morning to you all."
    first_ms = speech_ms(first)
    alone = [shape for shape in reported[0]["visemes"] if shape["offset_ms"] < first_ms]
    assert alone == shapes_of(first, first_ms)
    assert reported[0]["visemes"][len(alone)]["offset_ms"] == pytest.approx(first_ms, abs=20)


async def test_a_request_chooses_whether_it_gets_shapes(talk: Talk, server: Server, sandbox: Running) -> None:
    await voice(server, sandbox, "vendor_b_audio", need_viseme=False)
    seen = await spoken(talk)
    assert not named(seen, "viseme")
    assert "viseme_url" not in named(seen, "audio")[0]
    params = [{"platform": "vendor_b_audio", "need_viseme": True}]
    seen = await spoken(talk, platform_params=params)
    assert named(seen, "viseme")
    assert "viseme_url" in named(seen, "audio")[0]


async def test_an_answer_of_a_strategy_without_shapes_has_none(
    talk: Talk, server: Server, sandbox: Running, strategy
) -> None:
    await voice(server, sandbox, "vendor_b_audio", need_viseme=False)
    await strategy("answers", f"say:{TEXT}", speech="one")
    seen = await talk.turn("Hello", "answers")
    assert named(seen, "assistant_output_audio_chunk")
    assert not named(seen, "assistant_output_viseme")
    assert "viseme_url" not in named(seen, "assistant_output_audio")[0]


async def test_a_text_without_letters_has_no_shapes_and_no_file_of_them(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox, "vendor_b_audio")
    seen = await spoken(talk, "☺ ☺")
    assert named(seen, "audio_chunk")
    assert not named(seen, "viseme")
    assert "viseme_url" not in named(seen, "audio")[0]
