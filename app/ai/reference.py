"""Documentation of the AI endpoints for the reference page: events, errors and example streams."""

from collections.abc import Mapping
from typing import Any, Literal

from actors.plays.records import ConversationDeleted, TurnLost
from actors.runtime.context import StreamStopped
from actors.runtime.receipt import Receipt, Stage
from app.http.openapi.events import Digest, FailedAttempt, UnitPrice
from app.http.rows.docs import Docs, OtherResponse, Stream
from storage.errors import ConversationNotFound, TurnRunning
from storage.objects.contract import ObjectsError
from streams.events import (
    AssistantOutputAudio,
    AssistantOutputAudioChunk,
    AssistantOutputChunk,
    AssistantOutputContentSegment,
    AssistantOutputRestart,
    AssistantOutputViseme,
    Audio,
    AudioChunk,
    End,
    EndOfSpeech,
    Event,
    Failed,
    FinishReason,
    FirstSentenceEnabled,
    Start,
    UserInput,
    VisemeEvent,
    encode,
    error_content,
)
from streams.wire.codec import dumps
from streams.wire.errors import (
    BackendUnavailable,
    DatabaseError,
    DatabaseUnavailable,
    InternalError,
    InvalidParameter,
    InvalidSession,
    RateLimited,
    TooLarge,
    Unavailable,
)
from streams.wire.model import Model
from vendors.calls.fallback import AllStrategiesFailed
from vendors.speech.conversion import ConversionBusy


class SpeechFailure(Model):
    """Why the rest of an answer has no audio. Its text is complete."""

    error_type: str
    message: str
    index: int
    """The first paragraph whose audio is missing or incomplete."""


class StreamEnd(Model):
    digest: Digest
    latency_ms: dict[Stage | Literal["overhead"], int]
    """Milliseconds from the arrival of the request to each stage that was reached. `overhead` is a duration: the
    time before the first output that the server itself took."""
    attempts: list[FailedAttempt] | None = None
    """The failed attempts, if there were any."""


class ConversationEnd(StreamEnd):
    conversation_id: str
    record_id: int | None
    """The record of the turn in the history."""
    strategy: str | None
    """The strategy whose language model answered."""
    finish_reason: FinishReason
    unit_price: UnitPrice | None
    speech: SpeechFailure | None = None


class SpeechEnd(StreamEnd):
    strategy: str | None
    """The strategy whose voice spoke; null if the stream was cancelled before the first audio."""
    finish_reason: FinishReason


_BEGAN_MS = 1_790_000_000_000
_CONVERSATION_ID = "0199c0de5a7e7000b0a51c0ffee00001"
_LINK = "https://parley.example/files/{key}?e=1790086400&s=0f4c9a"
_PIECES = (b"\xff\xf3\x64\xc4\x00\x0c\x38\x02", b"\x9a\x4b\x0e\xd1\x77\x5c\x20\xe3", b"\xff\xf3\x64\xc4\x1f\x0d")
_PRICE = {"input_per_price": 0.000002, "output_per_price": 0.000008, "input_token": 42, "output_token": 13}


def _transcript(events: list[Event], end: Mapping[str, Any], stages: Mapping[str, int]) -> bytes:
    """Return the encoded stream of `events`, with `start` before and a matching `end` after them."""
    receipt = Receipt(0)
    for event in events:
        receipt.add_output(event.output())
    return _encoded([Start(), *events, End({**end, "digest": receipt.digest, "latency_ms": dict(stages)})])


def _encoded(events: list[Event]) -> bytes:
    return b"".join(encode(event, number, _BEGAN_MS + 120 * number) for number, event in enumerate(events, 1))


_TYPED_TURN = _transcript(
    [
        UserInput("Tell me about the sea."),
        AssistantOutputChunk(0, "The sea is"),
        AssistantOutputChunk(0, " wide."),
        AssistantOutputViseme(0, [(0, 0), (62, 19), (125, 4)]),
        FirstSentenceEnabled(),
        AssistantOutputAudioChunk(0, _PIECES[0], "audio/mpeg", 22_050),
        AssistantOutputContentSegment(0, "The sea is wide."),
        AssistantOutputAudioChunk(0, _PIECES[1]),
        AssistantOutputChunk(1, "It sings at night."),
        AssistantOutputContentSegment(1, "It sings at night."),
        AssistantOutputAudio(0, _LINK.format(key="0.mp3"), "audio/mpeg", _LINK.format(key="0.json")),
        AssistantOutputViseme(1, [(0, 6), (80, 15)]),
        AssistantOutputAudioChunk(1, _PIECES[2], "audio/mpeg", 22_050),
        AssistantOutputAudio(1, _LINK.format(key="1.mp3"), "audio/mpeg", _LINK.format(key="1.json")),
    ],
    {
        "conversation_id": _CONVERSATION_ID,
        "record_id": 1,
        "strategy": "scripted",
        "finish_reason": "stop",
        "unit_price": _PRICE,
    },
    {
        "admission": 3,
        "input": 3,
        "first_token": 181,
        "first_text": 184,
        "first_sentence": 240,
        "first_audio": 262,
        "total": 1_930,
        "overhead": 6,
    },
)

_DETECTED_TURN = _transcript(
    [
        EndOfSpeech(2_336),
        UserInput("Tell me about the sea."),
        AssistantOutputChunk(0, "The sea is wide."),
        AssistantOutputContentSegment(0, "The sea is wide."),
    ],
    {
        "conversation_id": _CONVERSATION_ID,
        "record_id": 2,
        "strategy": "scripted",
        "finish_reason": "stop",
        "unit_price": _PRICE,
    },
    {
        "admission": 3,
        "input": 3_052,
        "stt": 3_241,
        "first_token": 3_402,
        "first_text": 3_404,
        "total": 3_410,
        "overhead": 5,
    },
)

_ATTEMPT = {
    "strategy": "first",
    "stage": "llm",
    "error_type": "backend_unavailable",
    "message": "backend_unavailable: vendor_b_llm broke off its answer",
    "elapsed_ms": 412,
}

_RESTARTED_TURN = _transcript(
    [
        UserInput("Tell me about the sea."),
        AssistantOutputChunk(0, "The sea is"),
        AssistantOutputRestart(0),
        AssistantOutputChunk(0, "It covers most of the earth."),
        AssistantOutputContentSegment(0, "It covers most of the earth."),
    ],
    {
        "conversation_id": _CONVERSATION_ID,
        "record_id": 3,
        "strategy": "second",
        "finish_reason": "stop",
        "unit_price": _PRICE,
        "attempts": [_ATTEMPT],
    },
    {"admission": 3, "input": 3, "first_token": 181, "first_text": 184, "total": 960, "overhead": 6},
)

_BROKEN_TURN = _encoded(
    [
        Start(),
        UserInput("Tell me about the sea."),
        AssistantOutputChunk(0, "The sea is"),
        Failed(
            error_content(
                BackendUnavailable("vendor_b_llm broke off its answer", extra={"record_id": 4}), in_full=False
            )
        ),
    ]
)

_FAILED_SPEECH = _encoded([Start(), Failed(error_content(Unavailable("the server is draining"), in_full=False))])

_SPOKEN_TEXT = _transcript(
    [
        VisemeEvent([(0, 0), (55, 12), (130, 4)]),
        AudioChunk(_PIECES[0], "audio/mpeg", 22_050),
        AudioChunk(_PIECES[1]),
        Audio(
            _LINK.format(key="speech.mp3"),
            "audio/mpeg",
            {**_PRICE, "input_token": 18, "output_token": 0},
            _LINK.format(key="speech.json"),
        ),
    ],
    {"strategy": "local", "finish_reason": "stop"},
    {"admission": 2, "input": 2, "first_audio": 46, "total": 388, "overhead": 3},
)

_STREAM_ID = {"X-Service-Stream-Id": "The id of the stream."}
_KEY = {
    "Idempotency-Key": "1 to 255 visible ASCII characters. A repeated request with the same key gets the same "
    "stream, for as long as that stream can be read. Other parameters with the same key: 409. Input after the "
    "parameters is not compared: that of a repeated request is discarded."
}

_PARAMETERS = {
    "strategies": ["scripted"],
    "type": "text",
    "language_code": "en-US",
    "target_language_code": "en-US",
}

_GRADES = {"reference_text": "Good morning. What is the capital of Japan?"}
_ALL_GRADES = {
    "language": "en-US",
    "reference_text": "Good morning. How are you today?",
    "grading_system": "FivePoint",
    "granularity": "Word",
    "enable_miscue": True,
    "enable_prosody_assessment": True,
}

_TURN_EVENTS = (
    Start,
    EndOfSpeech,
    UserInput,
    AssistantOutputChunk,
    AssistantOutputContentSegment,
    AssistantOutputRestart,
    FirstSentenceEnabled,
    AssistantOutputViseme,
    AssistantOutputAudioChunk,
    AssistantOutputAudio,
    End,
    Failed,
)

_STREAM_ERRORS = (
    AllStrategiesFailed,
    BackendUnavailable,
    Unavailable,
    StreamStopped,
    InvalidSession,
    InternalError,
)
_SPEECH_ERRORS = (*_STREAM_ERRORS, ObjectsError)
_TURN_ERRORS = (
    InvalidParameter,
    ConversionBusy,
    TooLarge,
    RateLimited,
    *_STREAM_ERRORS,
    TurnRunning,
    TurnLost,
    ConversationNotFound,
    ConversationDeleted,
    DatabaseError,
    DatabaseUnavailable,
)

CONVERSE = Docs(
    bodies={
        "Text: the parameters, followed by text": f"{dumps(_PARAMETERS).decode()}Tell me about the sea.",
        "Audio: the parameters, followed by audio in base64 (shortened)": (
            f"{dumps({**_PARAMETERS, 'type': 'audio'}).decode()}UklGRv////9XQVZFZm10IBAAAAABAAEA"
        ),
    },
    headers=_KEY,
    stream=Stream(
        events=_TURN_EVENTS,
        ends=(ConversationEnd,),
        transcripts={
            "A text turn with a spoken answer (audio shortened)": _TYPED_TURN,
            "An audio turn whose end the server hears": _DETECTED_TURN,
            "A model breaks off, and the answer starts again (`on_break: restart`)": _RESTARTED_TURN,
            "A model breaks off, and the turn fails": _BROKEN_TURN,
        },
        headers={**_STREAM_ID, "X-Service-Conversation-Id": "The id of the conversation, including a new one."},
        errors=_TURN_ERRORS,
    ),
)

SPEAK = Docs(
    bodies={
        "A text and the names of strategies": {"text": "Hello from Parley.", "strategies": ["local"]},
        "With mouth shapes": {
            "text": "Hello from Parley.",
            "strategies": ["local"],
            "platform_params": [{"platform": "local_audio", "speed": 1.1, "need_viseme": True}],
        },
    },
    headers=_KEY,
    stream=Stream(
        events=(Start, AudioChunk, VisemeEvent, Audio, End, Failed),
        ends=(SpeechEnd,),
        transcripts={
            "A text spoken with mouth shapes (audio shortened)": _SPOKEN_TEXT,
            "The server is being shut down": _FAILED_SPEECH,
        },
        headers=_STREAM_ID,
        errors=_SPEECH_ERRORS,
    ),
)

RESUME = Docs(
    headers={"Last-Event-ID": "The id of the last event that was read; absent or empty: read from the start."},
    answers={204: OtherResponse("The stream has ended, and `Last-Event-ID` is its last event.")},
    stream=Stream(
        events=(
            *_TURN_EVENTS[:-2],
            AudioChunk,
            VisemeEvent,
            Audio,
            *_TURN_EVENTS[-2:],
        ),
        ends=(ConversationEnd, SpeechEnd),
        transcripts={"A text-to-speech stream, read from its start": _SPOKEN_TEXT},
        headers={
            **_STREAM_ID,
            "X-Service-Conversation-Id": "The id of the conversation, if the stream is a turn of one.",
        },
        errors=(*_TURN_ERRORS, ObjectsError),
    ),
)

CANCEL = Docs(
    answers={
        200: OtherResponse("`{}`: the answer so far is stored, and the next turn can begin.", "application/json")
    },
)

PRONOUNCE = Docs(
    bodies={
        "The parameters, followed by audio in base64 (shortened)": (
            f"{dumps({'strategy': 'local', 'data': _GRADES}).decode()}AAAJABEAGAAdAB8A"
        ),
        "All options": (f"{dumps({'strategy': 'local', 'data': _ALL_GRADES}).decode()}AAAJABEAGAAdAB8A"),
    },
)

DELETE_CONVERSATION = Docs(
    answers={200: OtherResponse("`{}`: the conversation is deleted.", "application/json")},
)

IMAGINE = Docs(
    headers={
        "Prefer": "`wait=<seconds>`, at most 300: the answer comes when the task has ended, or after that time.",
    },
)
"""Images (§4.20)."""
