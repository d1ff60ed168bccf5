"""Events are encoded in the format that browsers parse, with the contents of the interface."""

import base64
import json  # noqa: TID251 - an independent decoder
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import events
from streams.events import Event, encode, encode_ping, error_content
from streams.wire.errors import InvalidParameter, Unavailable

VISEMES = [(0, 21), (120, 4)]
SHAPES = [{"offset_ms": 0, "viseme_id": 21}, {"offset_ms": 120, "viseme_id": 4}]
PRICE = {"input_per_price": 0.5, "output_per_price": 0, "input_token": 3, "output_token": 0}


def parsed(stream: bytes) -> list[dict[str, str]]:
    """Return the fields of each event, parsed line by line as in the HTML standard."""
    seen: list[dict[str, str]] = [{}]
    for line in stream.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            seen.append({})
            continue
        name, _, value = line.partition(":")
        assert name not in seen[-1], "each field has one line"
        seen[-1][name] = value.removeprefix(" ")
    assert seen[-1] == {}, "an event ends with a blank line"
    return [fields for fields in seen if fields]


@pytest.mark.parametrize(
    ("event", "name", "content"),
    [
        (events.Start(), "start", "start"),
        (events.UserInput("hi"), "user_input", "hi"),
        (events.AssistantOutputChunk(0, "a\n\nb"), "assistant_output_chunk", {"index": 0, "text": "a\n\nb"}),
        (
            events.AssistantOutputContentSegment(1, "é😀\u2028"),
            "assistant_output_content_segment",
            {"index": 1, "text": "é😀\u2028"},
        ),
        (events.FirstSentenceEnabled(), "assistant_output_audio_first_sentence_enabled", True),
        (
            events.AssistantOutputAudioChunk(2, b"\0\xff", "audio/mpeg", 24_000),
            "assistant_output_audio_chunk",
            {"index": 2, "audio": "AP8=", "mime_type": "audio/mpeg", "sample_rate": 24_000},
        ),
        (events.AssistantOutputAudioChunk(2, b"a"), "assistant_output_audio_chunk", {"index": 2, "audio": "YQ=="}),
        (
            events.AssistantOutputAudio(0, "u", "audio/wav"),
            "assistant_output_audio",
            {"index": 0, "audio_url": "u", "mime_type": "audio/wav"},
        ),
        (
            events.AssistantOutputAudio(0, "u", "audio/wav", "v"),
            "assistant_output_audio",
            {"index": 0, "audio_url": "u", "mime_type": "audio/wav", "viseme_url": "v"},
        ),
        (
            events.AssistantOutputViseme(1, VISEMES),
            "assistant_output_viseme",
            {"index": 1, "visemes": SHAPES},
        ),
        (
            events.AssistantOutputViseme(1, VISEMES, estimated=True),
            "assistant_output_viseme",
            {"index": 1, "visemes": SHAPES, "estimated": True},
        ),
        (
            events.AudioChunk(b"abc", "audio/wav", 16_000),
            "audio_chunk",
            {"audio": "YWJj", "mime_type": "audio/wav", "sample_rate": 16_000},
        ),
        (events.AudioChunk(b"abc"), "audio_chunk", {"audio": "YWJj"}),
        (events.VisemeEvent(VISEMES, estimated=True), "viseme", {"visemes": SHAPES, "estimated": True}),
        (
            events.Audio("u", "audio/mpeg", PRICE),
            "audio",
            {"audio_url": "u", "mime_type": "audio/mpeg", "unit_price": PRICE},
        ),
        (
            events.End({"finish_reason": "stop", "strategy": None}),
            "end",
            {"finish_reason": "stop", "strategy": None},
        ),
        (events.Failed({"error_type": "x"}), "error", {"error": {"error_type": "x"}}),
    ],
)
def test_event_reads_back_with_its_content(event: Event, name: str, content: Any):
    frame = encode(event, 12, 1_700_000_000_123)

    (fields,) = parsed(frame)

    assert fields.keys() == {"id", "event", "data"}
    assert (fields["id"], fields["event"]) == ("12", name)
    data = json.loads(fields["data"])
    assert data == {"content": content, "timestamp": 1_700_000_000_123}


def test_every_event_has_a_unique_name():
    kinds = [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, Event)]
    names = [kind.name for kind in kinds if kind is not Event]

    assert sorted(names) == sorted(set(names))
    assert {"start", "end", "error"} <= set(names)


@given(st.lists(st.text(max_size=12) | st.text('\r\n:\0 {}"', max_size=6), max_size=5))
def test_joined_frames_can_be_parsed_for_any_text(texts: list[str]):
    stream = b"".join(encode(events.UserInput(said), number, number) for number, said in enumerate(texts, 1))

    seen = parsed(stream)

    assert [json.loads(fields["data"])["content"] for fields in seen] == texts
    assert [fields["id"] for fields in seen] == [str(number) for number in range(1, len(texts) + 1)]


def test_ping_events_have_no_id():
    assert parsed(encode_ping(7)) == [{"event": "ping", "data": '{"content":"ping","timestamp":7}'}]


@given(st.binary(max_size=20))
def test_audio_of_every_event_is_separate_base64(audio: bytes):
    content = events.AudioChunk(audio).content()

    assert base64.b64decode(content["audio"], validate=True) == audio


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (events.AssistantOutputChunk(0, "é"), "é"),
        (events.AssistantOutputAudioChunk(0, b"\1"), b"\1"),
        (events.AudioChunk(b"\1"), b"\1"),
        (events.AssistantOutputContentSegment(0, "é"), b""),
        (events.UserInput("é"), b""),
        (events.Start(), b""),
        (events.VisemeEvent(VISEMES), b""),
    ],
)
def test_the_digest_covers_only_the_answer(event: Event, said: str | bytes):
    assert event.output() == said


def test_error_types_in_events_have_underscores():
    error = Unavailable("backend unavailable is said twice")

    assert error_content(error, in_full=True) == {
        "error_type": "backend_unavailable",
        "message": "backend_unavailable: backend unavailable is said twice",
        "extra": {"retryable": True},
    }


def test_error_types_of_attempts_have_underscores_too():
    attempts = [
        {
            "strategy": "a",
            "stage": "llm",
            "error_type": "backend unavailable",
            "message": "backend unavailable: x y",
        },
        {"strategy": "b", "stage": "llm", "error_type": "config_invalid", "message": "config_invalid: z"},
    ]
    error = Unavailable("every strategy failed", extra={"attempts": attempts})

    content = error_content(error, in_full=True)

    assert [attempt["error_type"] for attempt in content["extra"]["attempts"]] == [
        "backend_unavailable",
        "config_invalid",
    ]
    assert [attempt["message"] for attempt in content["extra"]["attempts"]] == [
        "backend_unavailable: x y",
        "config_invalid: z",
    ]
    assert [attempt["strategy"] for attempt in content["extra"]["attempts"]] == ["a", "b"]
    assert attempts[0]["error_type"] == "backend unavailable", "the error itself is not changed"


def test_retryable_of_an_error_overrides_that_of_its_class():
    assert error_content(InvalidParameter("x"), in_full=False)["extra"] == {"retryable": False}
    assert error_content(InvalidParameter("x", extra={"retryable": True, "record_id": 3}), in_full=False)[
        "extra"
    ] == {
        "retryable": True,
        "record_id": 3,
    }
