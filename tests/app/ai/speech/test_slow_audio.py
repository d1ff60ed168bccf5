"""Voices that are slow, silent or break off: which voice replaces them, and what the client receives."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client import REGISTRY

from storage.operators.audit import COMMAND
from streams.audio.mp3 import mp3_duration_ms
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import VOICES, account
from tests.app.ai.speech.speech import audio_of
from tests.peers.sse_client import SeenEvent, all_events, events, named
from tests.running.servers import Server
from tests.vendors.http.upstream import Upstream, plain, running_upstream
from vendors.sandbox.content import mp3
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

TEXT = "Good morning to you all, and welcome."
HALF_PACE = key_of(pace_ms=200)
"""One piece of 100 ms every 200 ms."""


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        yield running


async def voice(
    server: Server,
    sandbox: Running,
    name: str,
    platform: str = "vendor_b_audio",
    key: str = "sandbox",
    **fields: Any,
) -> None:
    await account(server, sandbox, name, platform, key)
    value = {"account": name, **VOICES[platform], **fields}
    await server.services.configs.put("default", "speech", name, value, author="test", origin=COMMAND)


async def silent_voice(server: Server, upstream: Upstream, audio_format: str) -> None:
    silence = bytes(24_000 * 2)
    body, content_type = (silence, "audio/pcm") if audio_format == "wav" else (mp3(silence, 24_000), "audio/mpeg")
    upstream.respond_with(plain(200, body, Content_Type=content_type))
    configs = server.services.configs
    value = {"platform": "vendor_b_audio", "base_url": upstream.url, "api_key": "k"}
    await configs.put("default", "vendor_accounts", "silent", value, author="test", origin=COMMAND)
    value = {"account": "silent", "model": "gpt-4o-mini-tts", "audio_format": audio_format}
    await configs.put("default", "speech", "silent", value, author="test", origin=COMMAND)


async def spoken(talk: Talk, *strategies: str, text: str = TEXT) -> list[SeenEvent]:
    async with talk.post("/bp/ai/audio/tts", json={"text": text, "strategies": strategies}) as response:
        return await all_events(response)


def slow_audio(vendor: str) -> float:
    return REGISTRY.get_sample_value("parley_slow_audio_total", {"vendor": vendor}) or 0


def keys_of(sandbox: Running) -> list[str]:
    return [entry.key for entry in sandbox.bill.since()]


@pytest.mark.parametrize("platform", ["vendor_a_audio", "vendor_b_audio", "vendor_c"])
@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
async def test_the_next_voice_speaks_if_the_first_is_slower_than_real_time(
    talk: Talk, server: Server, sandbox: Running, platform: str, audio_format: str
) -> None:
    await voice(server, sandbox, "slow", platform, HALF_PACE, audio_format=audio_format)
    await voice(server, sandbox, "fast", "vendor_d_audio", audio_format=audio_format)
    seen = await spoken(talk, "slow", "fast")
    assert seen[-1].name == "end", seen[-1]
    assert seen[-1].content["strategy"] == "fast"
    first = named(seen, "audio_chunk")[0]
    assert first["sample_rate"] == 24_000
    entry = await sandbox.bill.wait(lambda entry: entry.ended is not None)
    assert (entry.vendor, entry.how) != ("google", "done")
    assert entry.closed_ms is not None, "a call that is given up is closed"


async def test_a_strategy_that_requires_less_pace_accepts_slow_audio(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox, "slow", key=HALF_PACE, min_realtime_factor=0.3)
    await voice(server, sandbox, "fast")
    assert (await spoken(talk, "slow", "fast", text="Good morning!"))[-1].content["strategy"] == "slow"


@pytest.mark.parametrize("behind", [[], ["gone"], ["missing"]])
async def test_the_last_voice_is_accepted_however_slow_it_is(
    talk: Talk, server: Server, sandbox: Running, behind: list[str]
) -> None:
    await voice(server, sandbox, "slow", key=HALF_PACE)
    value = {"account": "nobody", "model": "x"}
    await server.services.configs.put("default", "speech", "gone", value, author="test", origin=COMMAND)
    before = slow_audio("vendor_b_audio")
    body = {"text": "Good morning!", "strategies": ["slow", *behind]}
    outputs_at_first_audio = None
    seen = []
    async with talk.post("/bp/ai/audio/tts", json=body) as response:
        async for event in events(response):
            seen.append(event)
            if event.name == "audio_chunk" and outputs_at_first_audio is None:
                outputs_at_first_audio = next(sandbox.bill.since()).outputs
    assert seen[-1].name == "end", seen[-1]
    assert outputs_at_first_audio == 1, "nothing is held of a voice that nobody can replace"
    assert len(named(seen, "audio_chunk")) > 5
    assert slow_audio("vendor_b_audio") == before + 1


@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
async def test_the_next_voice_speaks_if_the_first_is_silent(
    talk: Talk, server: Server, sandbox: Running, upstream: Upstream, audio_format: str
) -> None:
    await silent_voice(server, upstream, audio_format)
    await voice(server, sandbox, "good", audio_format=audio_format)
    assert (await spoken(talk, "silent", "good"))[-1].content["strategy"] == "good"

    seen = await spoken(talk, "silent")
    assert [event.name for event in seen] == ["start", "error"]
    (attempt,) = seen[-1].content["error"]["extra"]["attempts"]
    assert attempt["message"] == "backend_unavailable: vendor_b_audio sent only silence"

    seen = await spoken(talk, "silent", "good", text="… ?!")
    assert seen[-1].content["strategy"] == "silent"


async def test_a_voice_that_breaks_off_is_replaced_only_before_its_pace_is_known(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox, "soon", key=key_of(fault="cut_mid_stream", position=2))
    await voice(server, sandbox, "late", key=key_of(fault="cut_mid_stream", position=8))
    await voice(server, sandbox, "good", "vendor_c")
    assert (await spoken(talk, "soon", "good"))[-1].content["strategy"] == "good"

    sandbox.bill.clear()
    seen = await spoken(talk, "late", "good")
    assert seen[-1].name == "error"
    error = seen[-1].content["error"]
    assert (error["error_type"], "attempts" in error["extra"]) == ("backend_unavailable", False)
    assert 300 <= mp3_duration_ms(audio_of(named(seen, "audio_chunk"))) <= 900
    assert [entry.vendor for entry in sandbox.bill.since()] == ["openai"]


@pytest.mark.folder
async def test_audio_that_cannot_be_stored_is_sent_completely_before_the_error(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox, "good")
    whole = audio_of(named(await spoken(talk, "good"), "audio_chunk"))
    objects = server.services.settings.data_dir / "objects"
    away = objects.rename(objects.with_name("away"))
    objects.touch()  # No folder can be created in a file.
    seen = await spoken(talk, "good")
    objects.unlink()
    away.rename(objects)
    assert audio_of(named(seen, "audio_chunk")) == whole
    assert seen[-1].name == "error"
    assert not named(seen, "audio")
    error = seen[-1].content["error"]
    assert (error["error_type"], error["extra"]["retryable"]) == ("internal", True)


async def test_an_answer_is_spoken_by_the_next_voice_if_the_first_is_slow(
    talk: Talk, server: Server, sandbox: Running, strategy
) -> None:
    await voice(server, sandbox, "slow", key=HALF_PACE)
    await voice(server, sandbox, "fast", "vendor_c")
    await strategy("one", f"say:{TEXT} {TEXT}", speech="slow")
    await strategy("two", "say:unused", speech="fast")
    seen = await talk.turn("Hello", "one", "two")
    assert seen[-1].name == "end", seen[-1]
    assert "speech" not in seen[-1].content
    assert named(seen, "assistant_output_audio_chunk")[0]["sample_rate"] == 44_100
    assert [entry.vendor for entry in sandbox.bill.since()] == ["openai", "elevenlabs", "elevenlabs"]


async def test_the_chosen_voice_of_an_answer_may_become_slow(
    talk: Talk, server: Server, sandbox: Running, strategy
) -> None:
    await voice(server, sandbox, "slow", key=HALF_PACE)
    await strategy("one", "say:Good morning! And how are you today?", speech="slow")
    before = slow_audio("vendor_b_audio")
    seen = await talk.turn("Hello", "one")
    assert "speech" not in seen[-1].content
    assert slow_audio("vendor_b_audio") == before + 2
    assert len(keys_of(sandbox)) == 2


async def test_a_client_that_leaves_while_audio_is_held_closes_the_call(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    limits = {"ping_after_s": 0.05, "resume_grace_s": 0}
    await server.services.configs.put("default", "limits", "default", limits, author="test", origin=COMMAND)
    waits = {"first_output_s": 60}
    await voice(server, sandbox, "stuck", key=key_of(fault="stall_mid_stream", position=1), waits=waits)
    await voice(server, sandbox, "good", "vendor_c")
    async with talk.post("/bp/ai/audio/tts", json={"text": TEXT, "strategies": ["stuck", "good"]}) as response:
        entry = await sandbox.bill.wait(lambda entry: entry.outputs == 1)
        assert entry.ended is None
        response.close()
    async with asyncio.timeout(5):
        await sandbox.bill.wait()
    assert entry.closed_ms is not None
    assert [entry.vendor for entry in sandbox.bill.since()] == ["openai"]
