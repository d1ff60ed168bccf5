"""Repeated speech is replayed without a vendor call. Concurrent requests for the same text share one synthesis."""

import asyncio
import hashlib
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from app.settings import Settings
from storage.operators.audit import COMMAND
from streams.wire.ids import new_id
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import VOICES, account
from tests.app.ai.speech.cached_speech import TEXT, cached_files, calls, only_key, said, speak, spoken, tts, voice
from tests.app.ai.speech.speech import audio_of, fetch
from tests.peers.sse_client import all_events, events, named
from tests.running.another_server import another_server
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

LATER = "Until tomorrow, then."
"""A text that is spoken completely while streams wait. A vendor call of theirs would have begun before."""


async def limit(server: Server, **fields: Any) -> None:
    await server.services.configs.put("default", "limits", "default", fields, author="test", origin=COMMAND)


def counted(result: str) -> float:
    return REGISTRY.get_sample_value("parley_speech_cache_total", {"result": result}) or 0


async def rows(talk: Talk) -> list[dict[str, Any]]:
    async with talk.server.services.database.connection() as conn:
        return [dict(row) for row in await conn.fetch("select * from attempts order by created_at, number")]


@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
async def test_a_repeated_text_is_replayed_as_the_same_events_at_no_cost(
    talk: Talk, server: Server, sandbox: Running, audio_format: str
) -> None:
    await voice(server, sandbox, audio_format=audio_format, price={"input": 0.25})
    before = counted("miss"), counted("hit")
    first, second = await spoken(talk), await spoken(talk)
    assert calls(sandbox) == 1
    assert (counted("miss"), counted("hit")) == (before[0] + 1, before[1] + 1)
    assert said(second) == said(first)
    assert len(named(second, "viseme")) >= 1
    assert [event.name for event in second] == [event.name for event in first]
    for seen in (first, second):
        audio = audio_of(named(seen, "audio_chunk"))
        reported, end = named(seen, "audio")[0], seen[-1].content
        assert end["digest"] == {"chars": 0, "sha256": hashlib.sha256(audio).hexdigest()}
        assert (end["strategy"], end["finish_reason"]) == ("one", "stop")
        assert reported["unit_price"]["input_token"] == len(TEXT)
        assert reported["unit_price"]["input_per_price"] == 0.25
        kept = await fetch(talk, reported["audio_url"])
        assert kept[44:] == audio[44:] if audio_format == "wav" else kept == audio
        async with talk.server.http.get(reported["viseme_url"]) as response:
            assert await response.json() == [v for content in named(seen, "viseme") for v in content["visemes"]]
    assert len(await cached_files(server)) == 2
    requested, again = await rows(talk)
    assert (requested["vendor"], requested["input_unit"], float(requested["price"])) == (
        "vendor_c",
        len(TEXT),
        0.25 * len(TEXT),
    )
    assert (again["vendor"], again["outcome"], again["strategy"]) == ("cache", "won", "one")
    assert (again["input_unit"], again["output_unit"], float(again["price"])) == (0, 0, 0)


async def test_replayed_speech_has_the_same_estimated_mouth_shapes(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await account(server, sandbox, "untimed", "vendor_b_audio")
    value = {"account": "untimed", "need_viseme": True, "cache": True, **VOICES["vendor_b_audio"]}
    await server.services.configs.put("default", "speech", "untimed", value, author="test", origin=COMMAND)
    first, second = await spoken(talk, "untimed"), await spoken(talk, "untimed")
    assert calls(sandbox) == 1
    assert said(second) == said(first)
    assert [content["estimated"] for content in named(second, "viseme")] == [True]
    async with talk.server.http.get(named(second, "audio")[0]["viseme_url"]) as response:
        assert await response.json() == named(first, "viseme")[0]["visemes"]


async def test_twenty_concurrent_requests_to_two_servers_share_one_synthesis(
    talk: Talk, server: Server, sandbox: Running, settings: Settings
) -> None:
    await limit(server, streams_per_user=50)
    await voice(server, sandbox, key=key_of(pace_ms=20))
    before = counted("joined")
    async with another_server(settings) as other:
        there = replace(talk, server=other)
        every = await asyncio.gather(*(spoken(who) for _ in range(10) for who in (talk, there)))
    assert calls(sandbox) == 1
    assert len(every) == 20
    assert all(said(seen) == said(every[0]) for seen in every)
    assert len({seen[-1].content["digest"]["sha256"] for seen in every}) == 1
    assert {seen[-2].name for seen in every} == {"audio"}
    assert counted("joined") == before + 19
    assert len(await cached_files(server)) == 2
    assert sorted(row["vendor"] for row in await rows(talk)) == ["cache"] * 19 + ["vendor_c"]


async def test_a_request_that_differs_in_any_setting_is_synthesized(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox)
    await spoken(talk)
    for count, fields in enumerate(
        [{"text": "Good night."}, {"speed": 1.1}, {"need_viseme": False}, {"voice": "AZnzlk1XvdvUeBnXmlld"}], 2
    ):
        for _ in range(2):
            await spoken(talk, **fields)
        assert calls(sandbox) == count
    await voice(server, sandbox, price={"input": 1})
    await spoken(talk)
    assert calls(sandbox) == 6
    await account(server, sandbox, "one", "vendor_c", key_of(name="another"))
    await spoken(talk)
    assert calls(sandbox) == 7


async def test_a_strategy_without_a_cache_is_called_for_every_request(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox, cache=False)
    await asyncio.gather(spoken(talk), spoken(talk))
    assert calls(sandbox) == 2
    assert await cached_files(server) == []


async def test_if_the_leading_client_disconnects_a_waiting_stream_calls_the_vendor(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await limit(server, resume_grace_s=0, ping_after_s=0.1, streams_per_user=50)
    await voice(server, sandbox, key=key_of(fault="stall_mid_stream", position=8, times=1))
    await voice(server, sandbox, "other")
    async with tts(talk) as leader:
        async for event in events(leader):
            if event.name == "audio_chunk":
                break
        async with tts(talk) as follower, tts(talk) as another:
            await spoken(talk, "other", text=LATER)
            assert calls(sandbox) == 2, "only those of the leader and of the later text"
            leader.close()
            seen, also = await asyncio.gather(all_events(follower), all_events(another))
    assert seen[-1].name == also[-1].name == "end"
    assert said(seen) == said(also)
    assert calls(sandbox) == 3
    assert next(sandbox.bill.since()).how == "closed_by_client"


async def test_if_the_leading_process_dies_another_calls_the_vendor_once_the_lease_has_expired(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox, key=key_of(pace_ms=30))
    await voice(server, sandbox, "other")
    client = server.services.valkey.client
    async with tts(talk) as leader:
        await sandbox.bill.wait(lambda entry: entry.outputs > 0)
        flight = await only_key(server, "flight")
        assert 5_000 < await client.pttl(flight) <= 10_000
        await all_events(leader)
    assert not await client.exists(flight)
    await client.delete(await only_key(server, "speech"))
    await client.set(flight, new_id(), px=10_000)  # The state that a killed process leaves.
    async with tts(talk) as follower:
        await spoken(talk, "other", text=LATER)
        assert calls(sandbox) == 2, "only those of the first leader and of the later text"
        await client.pexpire(flight, 50)
        assert (await all_events(follower))[-1].name == "end"
    assert calls(sandbox) == 3


async def test_waiting_streams_use_the_voice_that_the_leader_fell_back_to(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await limit(server, streams_per_user=50)
    await voice(server, sandbox, "bad", key=key_of(fault="unauthorized"))
    await voice(server, sandbox, "good", key=key_of(pace_ms=20))
    every = await asyncio.gather(*(spoken(talk, "bad", "good") for _ in range(8)))
    assert {seen[-1].content["strategy"] for seen in every} == {"good"}
    assert all(said(seen) == said(every[0]) for seen in every)
    assert calls(sandbox) == 2
    again = await spoken(talk, "bad", "good")
    assert again[-1].content["strategy"] == "good"
    assert calls(sandbox) == 3  # The first voice is tried first.


async def test_if_no_voice_can_speak_all_waiting_streams_get_the_error(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await limit(server, streams_per_user=50)
    await voice(server, sandbox, key=key_of(fault="unauthorized"))
    every = await asyncio.gather(*(speak(talk) for _ in range(6)))
    assert {seen[-1].content["error"]["error_type"] for seen in every} == {"all_strategies_failed"}


async def test_an_incomplete_synthesis_is_not_cached(talk: Talk, server: Server, sandbox: Running) -> None:
    await voice(server, sandbox, key=key_of(fault="cut_mid_stream", position=8, times=1))
    broken = await speak(talk)
    assert named(broken, "audio_chunk")
    assert broken[-1].name == "error"
    assert await cached_files(server) == []
    whole = await spoken(talk)
    assert said(await spoken(talk)) == said(whole)
    assert calls(sandbox) == 2


async def test_a_cached_fallback_costs_nothing_if_the_first_voice_fails(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox, "bad", key=key_of(fault="unauthorized"), cache=False)
    await voice(server, sandbox, "good")
    first = await spoken(talk, "good")
    assert said(await spoken(talk, "bad", "good")) == said(first)
    assert calls(sandbox) == 2
    assert [row["vendor"] for row in await rows(talk)] == ["vendor_c", "vendor_c", "cache"]


async def test_an_entry_whose_audio_is_missing_or_changed_is_ignored(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox)
    first = await spoken(talk)
    objects = server.services.objects
    await objects.delete(await cached_files(server))
    second = await spoken(talk)
    assert calls(sandbox) == 2
    (audio,) = [key for key in await cached_files(server) if key.endswith(".mp3")]
    await objects.put(audio, b"cut", content_type="audio/mpeg")
    third = await spoken(talk)
    assert said(first) == said(second) == said(third) == said(await spoken(talk))
    assert calls(sandbox) == 3
