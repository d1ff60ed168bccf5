"""Valid JSON of random shape between the events of speech: no exception, and nothing that has arrived is lost."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.wire.codec import dumps
from tests.streams.pieces import split
from tests.vendors.random_json import VERY_MANY, mixed, numbers_in, random_json
from vendors.chat.speech_response import SpeechResponseParser
from vendors.errors import VendorError
from vendors.protocols import AudioBytes, Visemes
from vendors.speech.elevenlabs import TimedLines
from vendors.speech.openai import TranscriptEvents
from vendors.speech.openai_speech import SpeechEvents

NAMES = (
    "type", "delta", "text", "choices", "content", "audio", "transcript", "data", "usage", "input_tokens",
    "output_tokens", "prompt_tokens", "completion_tokens", "phonemes", "phoneme", "offset_ms", "audio_base64",
    "alignment", "normalized_alignment", "characters", "character_start_times_seconds",
    "character_end_times_seconds", "finish_reason", "expires_at", "index",
)  # fmt: skip
TYPES = ("speech.audio.delta", "speech.audio.phonemes", "transcript.text.delta", "transcript.text.segment")
ENDS = ("speech.audio.done", "transcript.text.done", "error")
HARMLESS = st.lists(random_json(NAMES, types=TYPES, texts=["aaaa"]), max_size=6)
"""Without errors and ends."""
ERRORS = ("error", "detail", "message", "status", "code")
ANY = st.lists(random_json([*NAMES, *ERRORS], types=[*TYPES, *ENDS], texts=["aaaa", "length", "a"]), max_size=6)
SPLITS = st.lists(st.integers(0, 900), max_size=4)


def coded(text: str) -> str:
    return b64encode(f"{text} ".encode()).decode()  # An even number of bytes, as in samples.


def transcript(text: str) -> dict[str, Any]:
    return {"type": "transcript.text.delta", "delta": text}


def chunk(text: str) -> dict[str, Any]:
    return {"type": None, "choices": [{"delta": {"content": text}}]}


def speech(text: str) -> dict[str, Any]:
    return {"type": "speech.audio.delta", "audio": coded(text)}


def spoken(text: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"audio": {"data": coded(text), "transcript": "a"}}}]}


def line(text: str) -> dict[str, Any]:
    return {"audio_base64": coded(text)}


def hear(pieces: list[bytes], found: list[bytes]) -> None:
    events = TranscriptEvents("v")
    for piece in pieces:
        if (heard := events.feed(piece)) is not None:
            found[:] = [heard.text.encode()]


def speak(pieces: list[bytes], found: list[bytes]) -> None:
    events = SpeechEvents("v")
    for piece in pieces:
        note(events.feed(piece), found)


def speak_lines(pieces: list[bytes], found: list[bytes]) -> None:
    lines = TimedLines("v", character_count=20)
    for piece in pieces:
        note(lines.feed(piece), found)
    note(lines.end(), found)


def note(items: Any, found: list[bytes]) -> None:
    for item in items:
        if isinstance(item, AudioBytes):
            found.append(item.audio)
        elif isinstance(item, Visemes):
            assert all(shape.viseme_id in range(22) for shape in item.visemes)
            dumps(item)  # It can be sent to clients.


def speak_chat(pieces: list[bytes], found: list[bytes]) -> None:
    parser = SpeechResponseParser("v", None)
    for piece in pieces:
        found.append(parser.feed(piece))
        if parser.fault is not None:
            raise parser.fault


SSE, LINES = b"data: %b\n\n", b"%b\n"
STREAMS: dict[str, tuple[bytes, Callable[[str], dict[str, Any]], Callable[[list[bytes], list[bytes]], None]]] = {
    "transcript": (SSE, transcript, hear),
    "transcript of vLLM": (SSE, chunk, hear),
    "speech": (SSE, speech, speak),
    "speech of a chat model": (SSE, spoken, speak_chat),
    "speech with times": (LINES, line, speak_lines),
}


def check(stream: str, values: list[Any], at: list[int], *, may_fail: bool = False) -> None:
    form, valid, read = STREAMS[stream]
    body = b"".join(form % dumps(event) for event in mixed(valid, values))
    found: list[bytes] = []
    try:
        read(split(body, at), found)
    except VendorError:
        assert may_fail
    numbers = numbers_in(b"".join(found))
    assert numbers == list(range(len(numbers) if may_fail else len(values)))


@pytest.mark.parametrize("stream", STREAMS)
@given(HARMLESS, SPLITS)
def test_random_events_are_skipped(stream: str, values: list[Any], at: list[int]) -> None:
    check(stream, values, at)


@pytest.mark.parametrize("stream", STREAMS)
@given(ANY, SPLITS)
def test_errors_and_ends_of_random_shape_are_errors_of_the_vendor(
    stream: str, values: list[Any], at: list[int]
) -> None:
    check(stream, values, at, may_fail=True)


@pytest.mark.parametrize(
    ("stream", "value"),
    [
        ("transcript", transcript(None)),  # type: ignore[arg-type]
        ("transcript", {"type": ["transcript.text.delta"]}),
        ("speech", {"type": "speech.audio.phonemes", "phonemes": [{"phoneme": "m", "offset_ms": 1e300}]}),
        ("speech", {"type": "speech.audio.phonemes", "phonemes": [{"phoneme": ["m"], "offset_ms": 1}]}),
        ("speech with times", {"alignment": {
            "characters": ["a"], "character_start_times_seconds": [1e300], "character_end_times_seconds": [1e300],
        }}),
        ("speech of a chat model", {"choices": {"delta": 1}}),
    ],
)  # fmt: skip
def test_values_of_another_type_are_skipped(stream: str, value: Any) -> None:
    check(stream, [value], [])


@pytest.mark.parametrize("stream", STREAMS)
def test_heartbeats_are_skipped(stream: str) -> None:
    form, valid, read = STREAMS[stream]
    found: list[bytes] = []
    body = (form % b"" + form % b" " + form % b"null" + form % dumps(valid("«0»"))) * 2

    read([body], found)

    assert numbers_in(b"".join(found)) == [0, 0]


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("stream", STREAMS)
@settings(max_examples=VERY_MANY)
@given(HARMLESS, ANY, SPLITS)
def test_very_many_random_events(stream: str, harmless: list[Any], values: list[Any], at: list[int]) -> None:
    check(stream, harmless, at)
    check(stream, values, at, may_fail=True)
