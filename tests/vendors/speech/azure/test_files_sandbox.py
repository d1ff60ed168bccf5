"""The sandboxed Azure over HTTP: short recordings, and speech in one response."""

from base64 import b64encode

import aiohttp
import pytest

from streams.audio.audio import wav_header
from streams.wire.codec import dumps
from tests.vendors.speech.azure.inputs import PAUSE, TONE
from tests.vendors.speech.azure.sandbox_calls import SHORT, SSML

ASSESSED = {
    "ReferenceText": "Good evening",
    "GradingSystem": "HundredMark",
    "Dimension": "Comprehensive",
    "EnableMiscue": "True",
}


async def test_short_file_is_assessed_in_flat_form(azure_session: aiohttp.ClientSession):
    header = {
        "Pronunciation-Assessment": b64encode(dumps(ASSESSED)).decode(),
        "Content-Type": "audio/wav; codecs=audio/pcm",
    }
    async with azure_session.post(
        f"{SHORT}?language=en-US&format=detailed", data=wav_header(16_000) + TONE, headers=header
    ) as answer:
        reported = await answer.json()

    best = reported["NBest"][0]
    assert set(best) >= {"Confidence", "AccuracyScore", "FluencyScore", "CompletenessScore", "PronScore"}
    assert [(word["Word"], word["ErrorType"]) for word in best["Words"]] == [
        ("good", "None"), ("morning", "Insertion"), ("evening", "Omission"),
    ]  # fmt: skip
    assert best["Words"][0]["Phonemes"][0]["AccuracyScore"] == best["Words"][0]["AccuracyScore"]


async def test_a_silent_file_has_a_distinct_response(azure_session: aiohttp.ClientSession):
    header = {"Content-Type": "audio/wav"}
    async with azure_session.post(
        f"{SHORT}?language=en-US", data=wav_header(16_000) + PAUSE, headers=header
    ) as answer:
        assert (answer.status, (await answer.json())["RecognitionStatus"]) == (200, "InitialSilenceTimeout")


WAV = wav_header(16_000) + TONE


@pytest.mark.parametrize(
    ("query", "file", "headers"),
    [
        ("", WAV, {}),
        ("?language=en-US", TONE, {}),
        ("?language=en-US", wav_header(8_000) + TONE * 31, {}),
        ("?language=en-US", WAV, {"Content-Type": "audio/mpeg"}),
        ("?language=en-US", WAV, {"Pronunciation-Assessment": "no base64"}),
        ("?language=en-US", WAV + TONE * 30, {"Pronunciation-Assessment": b64encode(dumps(ASSESSED)).decode()}),
    ],
    ids=["no language", "no WAV", "too long", "other type", "broken header", "too long to assess"],
)
async def test_wrong_file_is_refused(
    azure_session: aiohttp.ClientSession, query: str, file: bytes, headers: dict[str, str]
):
    given = {"Content-Type": "audio/wav", **headers}
    async with azure_session.post(SHORT + query, data=file, headers=given) as answer:
        assert (answer.status, answer.content_type) == (400, "text/plain")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"X-Microsoft-OutputFormat": "loud"}, 400),
        ({"User-Agent": ""}, 400),
    ],
)
async def test_wrong_request_for_speech_is_refused(
    azure_session: aiohttp.ClientSession, headers: dict[str, str], status: int
):
    given = {
        "Content-Type": "application/ssml+xml",
        "X-Microsoft-OutputFormat": "riff-16khz-16bit-mono-pcm",
        **headers,
    }
    body = SSML.format(voice="en-US-JennyNeural", text="hi").encode()
    async with azure_session.post("/azure/cognitiveservices/v1", data=body, headers=given) as answer:
        assert answer.status == status


async def test_riff_output_begins_with_its_header(azure_session: aiohttp.ClientSession):
    given = {"Content-Type": "application/ssml+xml", "X-Microsoft-OutputFormat": "riff-16khz-16bit-mono-pcm"}
    body = SSML.format(voice="en-US-JennyNeural", text="hi").encode()
    async with azure_session.post("/azure/cognitiveservices/v1", data=body, headers=given) as answer:
        audio = await answer.read()

    assert audio[:44] == wav_header(16_000, data_bytes=len(audio) - 44)
