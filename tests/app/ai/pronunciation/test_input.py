"""Errors in the audio are reported with their cause, and close the vendor call."""

import asyncio
import json  # noqa: TID251 - an independent client
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from prometheus_client import REGISTRY

from streams.audio.audio import wav_header
from tests.app.ai.conftest import Talk
from tests.app.ai.pronunciation.assessments import (
    PATH,
    REFERENCE,
    assessed,
    assessment_accounts,
    attempts,
    called,
    calls,
    closed,
    coded,
    limits,
    params,
    refused,
)
from tests.running.servers import Server
from tests.streams.audio.pcm_samples import silence, tone
from tests.streams.pieces import split
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.mark.parametrize("size", [1, 3, 7, 4_000])
@pytest.mark.parametrize("known", [True, False])
async def test_supported_wav_is_read_for_every_split(
    talk: Talk, server: Server, sandbox: Running, size: int, *, known: bool
) -> None:
    await assessment_accounts(server, sandbox)
    audio = tone(0.35)
    body = params() + b"\n" + coded(wav_header(16_000, data_bytes=len(audio) if known else None) + audio)

    async def pieces() -> AsyncIterator[bytes]:
        small = split(body[:400], range(0, 400, size))
        for piece in [*filter(None, small), *split(body[400:], range(4_000, len(body), 4_000))]:
            yield piece

    assert (await assessed(talk, pieces()))["text"] == REFERENCE
    (call,) = calls(sandbox)
    assert call.billed["seconds"] == pytest.approx(0.35)


@pytest.mark.parametrize(("size", "counted"), [(4_000, False), (4_002, True), (4, False), (2, True)])
async def test_chunks_that_end_inside_a_base64_group_are_counted(
    talk: Talk, server: Server, sandbox: Running, size: int, *, counted: bool
) -> None:
    await assessment_accounts(server, sandbox)
    audio = coded(tone(0.35))

    async def pieces() -> AsyncIterator[bytes]:
        yield params()
        for piece in split(audio, range(size, len(audio), size)):
            yield piece

    before = REGISTRY.get_sample_value("parley_audio_unaligned_chunks_total")
    assert (await assessed(talk, pieces()))["text"] == REFERENCE
    assert (REGISTRY.get_sample_value("parley_audio_unaligned_chunks_total") > before) == counted


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"data": {"reference_text": "Hi"}}, "strategy is required"),
        ({"strategy": "one"}, "data is required"),
        ({"strategy": "one", "data": []}, "data must be an object"),
        ({"strategy": "one", "data": {}}, "reference_text is required"),
        ({"strategy": "one", "data": {"reference_text": " "}}, "reference_text is required"),
        ({"strategy": "one", "data": {"reference_text": 5}}, "reference_text must be a string"),
        (
            {"strategy": "one", "data": {"reference_text": "Hi", "grading_system": "Ten"}},
            "grading_system must be one of 'FivePoint' or 'HundredMark'",
        ),
        (
            {"strategy": "one", "data": {"reference_text": "Hi", "granularity": "word"}},
            "granularity must be one of 'Phoneme', 'Word' or 'FullText'",
        ),
        (
            {"strategy": "one", "data": {"reference_text": "Hi", "enable_miscue": "true"}},
            "enable_miscue must be true or false",
        ),
        (
            {"strategy": "one", "data": {"reference_text": "Hi", "enable_prosody_assessment": 1}},
            "enable_prosody_assessment must be true or false",
        ),
        (
            {"strategy": "one", "data": {"reference_text": "Hi", "language": "US English"}},
            "language must be a language code such as en-US",
        ),
        (
            {"strategy": "one", "data": {"reference_text": "Hi", "language": "fr-FR"}},
            "language fr-FR is not one of en",
        ),
    ],
)
async def test_wrong_fields_are_named(
    talk: Talk, server: Server, sandbox: Running, body: dict[str, Any], message: str
) -> None:
    await assessment_accounts(server, sandbox, languages=["en"])
    got = await refused(talk, json.dumps(body).encode() + coded(tone(0.5)))
    assert got == (400, f"invalid_parameter: {message}")
    assert not calls(sandbox)


@pytest.mark.parametrize(
    ("audio", "message"),
    [
        (b"", "audio is required"),
        (b" \n", "audio is required"),
        (coded(tone(0.29)), "audio is too short"),
        (coded(tone(0.29) + b"\0"), "audio is too short"),
        (coded(silence(2)), "audio is silent throughout"),
        *(
            (coded(head.ljust(20_000, b"\x81")), f"audio is {name}: send PCM, 16000 Hz, mono, 16 bits")
            for head, name in (
                (b"\x89PNG\r\n\x1a\n", "a PNG image"),
                (b"PK\3\4\x14\0", "a ZIP archive"),
                (b"<head><title>Gone</title></head>", "an HTML page"),
                (b"Internal Server Error. " * 40, "text"),
            )
        ),
        (b"AAA*", "audio is not valid base64"),
        (b"AAAAA", "audio is not valid base64 (chunks must contain multiples of 3 bytes)"),
        (
            coded(wav_header(44_100) + tone(1)),
            "audio is a WAV of PCM, 1 channel, 44100 Hz, 16 bits: send PCM, 16000 Hz, mono, 16 bits",
        ),
    ],
)
async def test_unusable_audio_is_refused_without_a_vendor_call(
    talk: Talk, server: Server, sandbox: Running, audio: bytes, message: str
) -> None:
    await assessment_accounts(server, sandbox)
    assert await refused(talk, params() + audio) == (400, f"invalid_parameter: {message}")
    assert not calls(sandbox)
    assert await attempts(server) == []


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"OggS\0\2" + bytes(40), "audio is Ogg"),
        (wav_header(8_000), "audio is a WAV of PCM, 1 channel, 8000 Hz, 16 bits"),
        (wav_header(16_000, channels=2), "audio is a WAV of PCM, 2 channels, 16000 Hz, 16 bits"),
    ],
)
async def test_another_format_is_refused_before_the_rest_of_the_audio_arrives(
    talk: Talk, server: Server, sandbox: Running, head: bytes, message: str
) -> None:
    await assessment_accounts(server, sandbox)
    reported = asyncio.Event()

    async def reading() -> AsyncIterator[bytes]:
        yield params() + coded(head)
        await reported.wait()
        yield coded(tone(1))

    async with asyncio.timeout(5), talk.post(PATH, data=reading()) as response:
        assert response.status == 400
        error = (await response.json())["error"]
        reported.set()
    assert error["error_type"] == "invalid_parameter"
    assert error["message"].startswith(f"invalid_parameter: {message}: send PCM")
    assert not calls(sandbox)


@pytest.mark.parametrize(
    ("rest", "status", "message"),
    [
        ([b"*"], 400, "audio is not valid base64"),
        ([b"A"], 400, "audio is not valid base64 (chunks must contain multiples of 3 bytes)"),
        ([coded(b"\0")], 400, "audio ends in the middle of a sample"),
        ([coded(b"\xff\x7f" * 9_000)], 400, "audio is clipped: over half of its samples are at full scale"),
        ([coded(tone(2))], 413, "audio exceeds 50000 bytes"),
        ([None], 400, "input timed out"),
    ],
)
async def test_error_of_the_input_closes_the_call_and_no_other_account_is_called(
    talk: Talk,
    server: Server,
    sandbox: Running,
    *,
    rest: Sequence[bytes | None],
    status: int,
    message: str,
) -> None:
    await assessment_accounts(server, sandbox, "sandbox", "sandbox")
    await limits(server, audio_bytes=50_000, input_idle_s=3)
    reported = asyncio.Event()

    async def reading() -> AsyncIterator[bytes]:
        yield params()
        yield coded(tone(0.3))
        await called(sandbox)
        for piece in rest:
            if piece is None:
                await reported.wait()
                return
            yield piece

    async with asyncio.timeout(30), talk.post(PATH, data=reading()) as response:
        error = (await response.json())["error"]
        reported.set()
    assert (response.status, error["message"]) == (status, f"invalid_parameter: {message}")
    assert (await closed(sandbox)).how == "closed_by_client"
    assert len(calls(sandbox)) == 1
    (row,) = await attempts(server)
    assert row[:3] == ("first", "assess", "canceled")
    assert row[3] in {1, 2}  # Audio within the limit may reach the vendor before the rest exceeds it.


async def test_account_that_recognizes_no_words_has_not_failed(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await assessment_accounts(server, sandbox, key_of(text=""), "sandbox")
    got = await refused(talk, params() + coded(tone(0.5)))
    assert got == (400, "invalid_parameter: no speech was heard")
    assert [row[:4] for row in await attempts(server)] == [("first", "assess", "won", 1)]


@pytest.mark.parametrize("text", ["...", "🙂🙂", '"""', "a" * 16_385])
async def test_reference_without_a_word_or_too_long_is_refused(talk: Talk, text: str) -> None:
    params = {"strategy": "any", "data": {"reference_text": text}}
    async with talk.post("/bp/ai/audio/pronunciation", data=json.dumps(params)) as refused:
        assert refused.status == 400
        assert "reference_text" in (await refused.json())["error"]["message"]
