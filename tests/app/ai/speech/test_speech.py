"""Text to speech, speech recognition and spoken conversations with the real local engines."""

import base64
import hashlib
import io
import re
import wave
from typing import Any

from storage.operators.audit import COMMAND
from streams.audio.mp3 import mp3_duration_ms
from tests.app.ai.conftest import Talk
from tests.app.ai.speech.speaking_server import module_server, server
from tests.app.ai.speech.speech import audio_of, fetch
from tests.peers.sse_client import SeenEvent, all_events, named
from tests.running.servers import Server

__all__ = ["module_server", "server"]

TEXT = "Good morning to you all. This is a second sentence, and it is a little longer."


async def speak(talk: Talk, text: str = TEXT, strategy: str = "local", **params: Any) -> list[SeenEvent]:
    body: dict[str, Any] = {"text": text, "strategies": [strategy]}
    if params:
        body["platform_params"] = [{"platform": "local_audio", **params}]
    async with talk.post("/bp/ai/audio/tts", json=body) as response:
        assert response.headers["X-Service-Stream-Id"]
        return await all_events(response)


async def test_the_stored_file_equals_the_audio_that_was_sent(talk: Talk) -> None:
    seen = await speak(talk, need_viseme=False)
    assert [seen[0].name, seen[-2].name, seen[-1].name] == ["start", "audio", "end"]
    chunks = named(seen, "audio_chunk")
    assert (chunks[0]["mime_type"], chunks[0]["sample_rate"]) == ("audio/mpeg", 22_050)
    assert all(chunk.keys() == {"audio"} for chunk in chunks[1:])
    audio = audio_of(chunks)
    assert 3_000 < mp3_duration_ms(audio) < 9_000
    reported = seen[-2].content
    assert reported["mime_type"] == "audio/mpeg"
    assert reported["unit_price"]["input_token"] == len(TEXT)
    assert "viseme_url" not in reported
    assert await fetch(talk, reported["audio_url"]) == audio
    end = seen[-1].content
    assert (end["strategy"], end["finish_reason"]) == ("local", "stop")
    assert end["digest"] == {"chars": 0, "sha256": hashlib.sha256(audio).hexdigest()}
    assert end["latency_ms"]["first_audio"] <= end["latency_ms"]["total"]


async def test_visemes_are_sent_before_their_audio_and_are_stored(talk: Talk) -> None:
    seen = await speak(talk, need_viseme=True)
    spoken_ms, audio, shapes = 0, b"", []
    for event in seen:
        if event.name == "viseme":
            shapes += event.content["visemes"]
            assert all(shape["offset_ms"] >= spoken_ms - 100 for shape in event.content["visemes"])
        elif event.name == "audio_chunk":
            audio += base64.b64decode(event.content["audio"])
            spoken_ms = mp3_duration_ms(audio)
    assert len(shapes) > 20
    assert [shape["offset_ms"] for shape in shapes] == sorted(shape["offset_ms"] for shape in shapes)
    assert all(0 <= shape["viseme_id"] <= 21 for shape in shapes)
    url = named(seen, "audio")[0]["viseme_url"]
    async with talk.server.http.get(url) as response:
        assert await response.json() == shapes


async def test_higher_speed_shortens_the_audio(talk: Talk) -> None:
    slow = mp3_duration_ms(audio_of(named(await speak(talk, speed=0.7), "audio_chunk")))
    fast = mp3_duration_ms(audio_of(named(await speak(talk, speed=2.0), "audio_chunk")))
    assert fast < slow / 1.5


async def test_wav_is_streamed_with_unknown_sizes_and_stored_with_the_real_ones(talk: Talk) -> None:
    value = {"account": "local-audio", "model": "espeak", "voice": "en-us", "audio_format": "wav"}
    await talk.server.services.configs.put("default", "speech", "wav", value, author="test", origin=COMMAND)
    seen = await speak(talk, strategy="wav")
    audio = audio_of(named(seen, "audio_chunk"))
    assert named(seen, "audio_chunk")[0]["mime_type"] == "audio/wav"
    assert audio[4:8] == audio[40:44] == b"\xff\xff\xff\xff"
    kept = await fetch(talk, named(seen, "audio")[0]["audio_url"])
    assert kept[44:] == audio[44:]
    with wave.open(io.BytesIO(kept)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 22_050)
        assert 3 < file.getnframes() / file.getframerate() < 9


async def test_the_next_voice_speaks_if_the_first_is_unreachable(talk: Talk) -> None:
    configs = talk.server.services.configs
    account = {"platform": "local_audio", "base_url": "http://127.0.0.1:9/v1"}
    await configs.put("default", "vendor_accounts", "gone", account, author="test", origin=COMMAND)
    await configs.put(
        "default", "speech", "gone", {"account": "gone", "model": "espeak"}, author="test", origin=COMMAND
    )
    body = {"text": "Hello.", "strategies": ["gone", "local"]}
    async with talk.post("/bp/ai/audio/tts", json=body) as response:
        seen = await all_events(response)
    assert seen[-1].content["strategy"] == "local"
    async with talk.post("/bp/ai/audio/tts", json={**body, "strategies": ["gone"]}) as response:
        seen = await all_events(response)
    assert [event.name for event in seen] == ["start", "error"]
    error = seen[-1].content["error"]
    assert error["error_type"] == "all_strategies_failed"
    assert [(a["strategy"], a["stage"]) for a in error["extra"]["attempts"]] == [("gone", "tts")]


async def test_an_answer_is_spoken_paragraph_by_paragraph_while_it_is_written(talk: Talk) -> None:
    seen = await talk.turn("Tell me a story", "scripted")
    assert seen[-1].name == "end", seen[-1]
    assert "speech" not in seen[-1].content
    names = [event.name for event in seen]
    assert names.count("assistant_output_audio_first_sentence_enabled") == 1
    first = names.index("assistant_output_audio_first_sentence_enabled")
    assert names[first + 1] == "assistant_output_audio_chunk"
    assert names.index("assistant_output_audio_chunk") == first + 1
    segments = named(seen, "assistant_output_content_segment")
    assert len(segments) >= 3
    chunks = named(seen, "assistant_output_audio_chunk")
    spoken = [chunk["index"] for chunk in chunks]
    assert spoken == sorted(spoken)
    assert set(spoken) == {segment["index"] for segment in segments}
    kept = {audio["index"]: audio for audio in named(seen, "assistant_output_audio")}
    for index in set(spoken):
        of_index = [chunk for chunk in chunks if chunk["index"] == index]
        assert of_index[0]["mime_type"] == "audio/mpeg"
        assert all("mime_type" not in chunk for chunk in of_index[1:])
        audio = audio_of(of_index)
        assert await fetch(talk, kept[index]["audio_url"]) == audio
        words = len(segments[index]["text"].split())
        assert words * 150 < mp3_duration_ms(audio) < words * 900 + 1500
    _check_digest(seen)
    record = (await talk.history())["conversation_records"][0]
    items = record["content"][1]["content"]
    assert [item["type"] for item in items] == ["text", "audio_url"] * len(segments)
    assert items[1]["source"] == {"from_user": False, "platform": "local_audio", "model": "espeak"}
    assert mp3_duration_ms(await fetch(talk, items[1]["audio_url"]["url"])) > 1_000


def _check_digest(seen: list[SeenEvent]) -> None:
    """Check the digest in `end` against the events in the order of their ids."""
    sha, chars = hashlib.sha256(), 0
    for event in seen:
        if event.name == "assistant_output_chunk":
            sha.update(event.content["text"].encode())
            chars += len(event.content["text"])
        elif event.name == "assistant_output_audio_chunk":
            sha.update(base64.b64decode(event.content["audio"]))
    assert seen[-1].content["digest"] == {"chars": chars, "sha256": sha.hexdigest()}


async def test_an_answer_whose_voice_fails_is_text_and_the_end_event_has_the_reason(
    talk: Talk, strategy, server: Server
) -> None:
    account = {"platform": "local_audio", "base_url": "http://127.0.0.1:9/v1"}
    await server.services.configs.put("default", "vendor_accounts", "gone", account, author="test", origin=COMMAND)
    value = {"account": "gone", "model": "espeak"}
    await server.services.configs.put("default", "speech", "gone", value, author="test", origin=COMMAND)
    await strategy("mute", "say:One. Two. Three.", speech="gone")
    seen = await talk.turn("Hello", "mute")
    assert "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk")) == "One. Two. Three."
    assert not named(seen, "assistant_output_audio_chunk")
    speech = seen[-1].content["speech"]
    assert (speech["error_type"], speech["index"]) == ("backend_unavailable", 0)
    assert (await talk.history())["conversation_records"][0]["status"] == "complete"


async def test_recognized_speech_becomes_the_user_input(talk: Talk) -> None:
    text = "Good morning. What is the capital of Japan?"
    value = {"account": "local-audio", "model": "piper", "audio_format": "wav", "waits": {"first_output_s": 30}}
    await talk.server.services.configs.put("default", "speech", "natural-wav", value, author="test", origin=COMMAND)
    wav = audio_of(named(await speak(talk, text, strategy="natural-wav"), "audio_chunk"))
    encoded = base64.b64encode(wav)

    async def upload():
        yield talk.params("scripted-text", type="audio")
        for start in range(0, len(encoded), 4096):
            yield encoded[start : start + 4096]

    async with talk.post("/bp/ai/conversation", data=upload()) as response:
        talk.remember(response)
        seen = await all_events(response)
    assert seen[-1].name == "end", seen[-1]
    words = re.findall(r"\w+", named(seen, "user_input")[0].lower())
    assert {"good", "morning", "capital", "japan"} <= set(words)
    assert {"input", "stt", "first_text"} <= seen[-1].content["latency_ms"].keys()
    text, audio = (await talk.history())["conversation_records"][0]["content"][0]["content"]
    assert text["source"]["from_user"]
    assert audio["source"]["from_user"]
    assert await fetch(talk, audio["audio_url"]["url"]) == wav


async def test_silence_is_refused_without_a_call_of_the_model(talk: Talk) -> None:
    silence = base64.b64encode(bytes(32_000))
    async with talk.post(
        "/bp/ai/conversation", data=talk.params("scripted-text", type="audio") + silence
    ) as response:
        seen = await all_events(response)
    assert [event.name for event in seen] == ["start", "error"]
    assert seen[-1].content["error"]["message"] == "invalid_parameter: no speech was heard"


async def test_a_language_that_a_strategy_lacks_is_a_failed_attempt_and_another_speaks_it(talk: Talk) -> None:
    german = [{"platform": "local_audio", "language_code": "de"}]
    body = {"text": "Guten Morgen.", "strategies": ["local-natural"], "platform_params": german}
    async with talk.post("/bp/ai/audio/tts", json=body) as response:
        error = (await all_events(response))[-1].content["error"]
    assert (error["error_type"], error["extra"]["retryable"]) == ("all_strategies_failed", False)
    assert error["extra"]["attempts"][0]["message"] == "invalid_parameter: language_code de is not one of en"
    async with talk.post("/bp/ai/audio/tts", json={**body, "strategies": ["local-natural", "local"]}) as response:
        assert (await all_events(response))[-1].content["strategy"] == "local"
    async with talk.post(
        "/bp/ai/conversation",
        data=talk.params("scripted-text", type="audio", language_code="de-DE")
        + base64.b64encode(b"\1\x40" * 16_000),
    ) as response:
        error = (await all_events(response))[-1].content["error"]
    attempt = error["extra"]["attempts"][0]
    assert (attempt["stage"], attempt["message"]) == (
        "stt",
        "invalid_parameter: language_code de-DE is not one of en",
    )
