"""Whole responses of speech with JSON of random shape in them: a result, or an error of the vendor."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from streams.wire.codec import dumps
from tests.vendors.random_json import VERY_MANY, extended, random_json
from vendors.calls.meter import Meter
from vendors.chat import speech_response
from vendors.errors import VendorError
from vendors.protocols import Transcript
from vendors.speech import google_stt, google_tts, local_assess, openai
from vendors.speech.azure import stt

NAMES = (
    "text", "segments", "no_speech_prob", "avg_logprob", "usage", "seconds", "duration", "error", "results",
    "alternatives", "transcript", "totalBilledTime", "audioContent", "timepoints", "markName", "timeSeconds",
    "RecognitionStatus", "DisplayText", "NBest", "Display", "choices", "message", "audio", "data", "raw_data",
    "finish_reason", "code", "status",
)  # fmt: skip
VALUES = random_json(NAMES, texts=["aaaa", "w0", "1.5", "nan", "9s"])
FURTHER = random_json(["words", "language", "x_groq"], texts=["a"])
"""Members that nobody reads."""

Read = Callable[[Any], Any]


def speech(response: Any) -> bytes:
    value = response if isinstance(response, dict) else {}
    google_tts._times_ms(value)
    return google_tts._audio("v", value)


RESPONSES: dict[str, tuple[Read, dict[str, Any], Any]] = {
    "openai": (
        lambda response: openai.parse_complete("v", response),
        {"text": "Hi.", "segments": [], "duration": "1.5"},
        Transcript("Hi.", final=True, seconds=1.5),
    ),
    "google": (
        lambda response: google_stt._transcript("v", response if isinstance(response, dict) else {}),
        {"results": [{"alternatives": [None, {"transcript": "Hi."}]}, None], "totalBilledTime": "2s"},
        Transcript("Hi.", final=True, seconds=2),
    ),
    "google's speech": (speech, {"audioContent": "SGku", "timepoints": [7, {"markName": ["w0"]}]}, b"Hi."),
    "azure": (
        lambda response: stt.parse_short("v", response),
        {"RecognitionStatus": "Success", "DisplayText": "Hi."},
        Transcript("Hi.", final=True),
    ),
    "speech of a chat model": (
        lambda response: speech_response.parse_complete("v", response, None)[0],
        {"choices": [{"message": {"audio": {"data": b64encode(b"Hi.").decode(), "transcript": 5}}}]},
        b"Hi.",
    ),
    "local assessment": (
        lambda response: local_assess.parse_complete("v", response).text,
        {"text": "Hi.", "raw_data": {}},
        "Hi.",
    ),
}


def check(name: str, further: Any, value: Any) -> None:
    read, valid, result = RESPONSES[name]
    assert read(extended(valid, further)) == result
    for response in (value, extended(value, valid) if isinstance(value, dict) else valid):
        try:
            found = read(response)
        except VendorError:
            continue
        if isinstance(found, Transcript):
            Meter().observe(found)
            dumps(found)


@pytest.mark.parametrize("name", RESPONSES)
@given(FURTHER, VALUES)
def test_random_responses(name: str, further: Any, value: Any) -> None:
    check(name, further, value)


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [{}]])
def test_a_response_without_a_result_is_silence_or_an_error(name: str, value: Any) -> None:
    check(name, {}, value)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", RESPONSES)
@settings(max_examples=VERY_MANY)
@given(FURTHER, VALUES)
def test_very_many_random_responses(name: str, further: Any, value: Any) -> None:
    check(name, further, value)
