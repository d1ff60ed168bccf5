"""Turns by voice, barge-in, text to speech and pronunciation."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession

from parley_client import AudioBegins, AudioChunk, ParleyClient, ParleyError, Start
from streams.audio.durations import duration_s
from tests.app.ai.conftest import sandbox
from tests.app.ai.pronunciation.assessments import REFERENCE, assessment_accounts
from tests.app.ai.sandbox_accounts import account, chat
from tests.app.ai.speech.ears import ears
from tests.browser.unreliable_proxy import proxy_to
from tests.clients.cases import SIGN_KEY
from tests.clients.conftest import configure
from tests.clients.python.conftest import PROMPT
from tests.running.servers import Server
from tests.streams.audio.pcm_samples import tone
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

__all__ = ["sandbox"]

HEARD_S = 1.5
HEARD = "What is the capital of Japan?"


def pieces(audio: bytes, size: int) -> list[bytes]:
    return [audio[begin : begin + size] for begin in range(0, len(audio), size)]


async def test_audio_is_sent_while_it_is_recorded(client: ParleyClient, server: Server, sandbox: Running) -> None:
    await ears(server, sandbox, "one", key=key_of(text=HEARD))
    begun = asyncio.Event()

    async def microphone() -> AsyncIterator[bytes]:
        first, *others = pieces(tone(1.0), 1_000)  # no multiple of 3 bytes
        yield first
        await begun.wait()
        for piece in others:
            yield piece

    turn = client.converse(strategies=["one"], audio=microphone(), language_code="en-US")
    async for event in turn:
        if isinstance(event, Start):
            begun.set()
    assert turn.user_input == HEARD
    assert turn.text
    (call,) = [call for call in sandbox.bill.since() if call.stage == "stt"]
    assert call.billed["seconds"] == pytest.approx(1.0)


async def test_audio_that_was_cut_is_sent_again_from_its_beginning(
    client: ParleyClient, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "one", key=key_of(text=HEARD))
    async with (
        proxy_to(server.url) as proxy,
        ParleyClient(proxy.url, sign_key=SIGN_KEY, session=client.session, backoff=PROMPT) as cut,
    ):
        recorded = asyncio.Event()

        async def microphone() -> AsyncIterator[bytes]:
            first, *others = pieces(tone(1.0), 1_000)
            yield first
            await recorded.wait()
            for piece in others:
                yield piece

        turn = cut.converse(strategies=["one"], audio=microphone(), language_code="en-US")
        events = aiter(turn)
        await anext(events)
        proxy.cut()
        recorded.set()
        rest = [event async for event in events]
    assert [event.id for event in rest] == list(range(2, len(rest) + 2))
    assert (turn.user_input, turn.end) == (HEARD, rest[-1])
    billed = [call.billed["seconds"] for call in sandbox.bill.since() if call.stage == "stt" and call.how == "done"]
    assert billed == [pytest.approx(1.0)]


async def test_a_microphone_that_fails_ends_the_turn_with_its_error(
    client: ParleyClient, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "one", key=key_of(text=HEARD))

    async def microphone() -> AsyncIterator[bytes]:
        yield tone(0.5)
        raise OSError("the microphone was unplugged")

    turn = client.converse(strategies=["one"], audio=microphone(), language_code="en-US")
    with pytest.raises(OSError, match="unplugged"):
        await turn.finish()
    with pytest.raises(OSError, match="unplugged"):
        await client.assess(microphone(), strategy="one", reference_text=REFERENCE)


async def test_an_interrupted_answer_keeps_what_was_heard(
    client: ParleyClient, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox)
    answer = "The first sentence is here. " * 40
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(text=answer, pace_ms=5), speech="voice")
    turn = client.converse(strategies=["one"], text="Tell me a story", language_code="en-US")
    names, audio = [], b""
    async for event in turn:
        names.append(type(event))
        if isinstance(event, AudioChunk) and (duration_s(audio, "audio/mpeg") or 0) < HEARD_S:
            audio += event.audio
            if (duration_s(audio, "audio/mpeg") or 0) >= HEARD_S:
                await turn.interrupt(heard_ms=round(HEARD_S * 1000))
    assert turn.end is not None
    assert turn.end.finish_reason == "canceled"
    assert names.index(AudioBegins) + 1 == names.index(AudioChunk)
    (record,) = (await client.history(turn.conversation_id or ""))["conversation_records"]
    assert record["status"] == "interrupted"
    (heard,) = [message["content"][0]["text"] for message in record["content"] if message["role"] == "assistant"]
    assert answer.startswith(heard)
    assert 5 < len(heard) < 60


async def test_a_text_is_spoken(client: ParleyClient, server: Server, sandbox: Running) -> None:
    await voice(server, sandbox)
    speech = client.speak("Good morning.", strategies=["voice"])
    audio = await speech.audio()
    assert speech.file is not None
    async with ClientSession() as http, http.get(speech.file.audio_url) as response:
        assert await response.read() == audio
    assert speech.file.mime_type == "audio/mpeg"
    assert speech.end is not None
    assert speech.end.strategy == "voice"


async def test_a_pronunciation_is_assessed(client: ParleyClient, server: Server, sandbox: Running) -> None:
    await assessment_accounts(server, sandbox)

    async def microphone() -> AsyncIterator[bytes]:
        for piece in pieces(tone(1.2), 3_200):
            yield piece

    result = await client.assess(microphone(), strategy="one", reference_text=REFERENCE, language="en-GB")
    assert (result["text"], result["strategy"]) == (REFERENCE, "one")
    with pytest.raises(ParleyError, match="audio is silent") as refused:
        await client.assess(bytes(32_000), strategy="one", reference_text=REFERENCE)
    assert refused.value.status == 400


@pytest.mark.parametrize("lost", ["the recording", "the result"])
async def test_an_assessment_whose_connection_is_lost_is_repeated_from_its_beginning(
    client: ParleyClient, server: Server, sandbox: Running, lost: str
) -> None:
    await assessment_accounts(server, sandbox)
    async with (
        proxy_to(server.url) as proxy,
        ParleyClient(proxy.url, sign_key=SIGN_KEY, session=client.session, backoff=PROMPT) as cut,
    ):

        async def microphone() -> AsyncIterator[bytes]:
            first, *others = pieces(tone(1.2), 20_000)
            yield first
            await sandbox.bill.wait(lambda _: True)
            if lost == "the recording":
                proxy.cut()
            else:
                proxy.cuts = [0]
            for piece in others:
                yield piece

        result = await cut.assess(microphone(), strategy="one", reference_text=REFERENCE)
    assert (result["text"], proxy.cuts) == (REFERENCE, [])
    first, second = sandbox.bill.since()
    assert first.how == ("closed_by_client" if lost == "the recording" else "done")
    assert (second.how, second.billed["seconds"]) == ("done", pytest.approx(1.2))


async def test_a_turn_has_either_text_or_audio(client: ParleyClient) -> None:
    for given in ({}, {"text": "Hello", "audio": b""}):
        with pytest.raises(TypeError, match="either text or audio"):
            client.converse(strategies=["one"], language_code="en-US", **given)


async def voice(server: Server, sandbox: Running) -> None:
    await account(server, sandbox, "voice", "vendor_b_audio")
    value = {"account": "voice", "model": "tts-1", "voice": "alloy"}
    await configure(server, "speech", value, name="voice")
