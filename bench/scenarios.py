"""Loads and scenarios: the requests of a load as bytes, and the event that marks the first output."""

import math
import re
from array import array
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from streams.wire.codec import dumps

ScenarioName = Literal["text", "audio", "tts", "pronunciation"]
Arrivals = Literal["even", "random"]
_RATE = 16_000
_PIECE_MS = 100
_TEXT = "How are you today? I would like to hear a story."
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)?")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}


@dataclass(frozen=True, slots=True)
class Load:
    """A load of streams: a closed loop of `at_once` streams, or an open loop of `rate` streams per second.

    The load ends after `streams` streams, or begins no stream after `for_s` seconds.
    """

    name: str
    strategies: Sequence[str]
    scenario: ScenarioName = "text"
    streams: int = 0
    for_s: float = 0
    at_once: int = 0
    over_s: float = 0
    """The time over which the beginning of the first `at_once` streams is spread."""
    rate: float = 0
    arrivals: Arrivals = "random"
    audio_s: float = 2
    """Length of the recording in a request."""
    input_every_s: float = 0
    """Time between two pieces of the recording, 100 ms each; 0: all at once."""
    read_every: int = 1
    """Every how many streams one is parsed in full."""
    timeout_s: float = 300

    def parts(self, count: int) -> list["Load"]:
        """Divide the load among `count` generators."""
        return [
            replace(
                self,
                streams=_share(self.streams, part, count),
                at_once=_share(self.at_once, part, count),
                rate=self.rate / count,
            )
            for part in range(count)
        ]


def _share(number: int, part: int, count: int) -> int:
    return number * (part + 1) // count - number * part // count


@dataclass(frozen=True, slots=True)
class Request:
    """`first` is sent immediately, then each of `pieces` after a pause of `every_s`."""

    first: bytes
    pieces: Sequence[bytes] = field(default=())
    every_s: float = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of request. `marker` is the name of the event that counts as the first output.

    The marker is empty for a scenario that is answered with a JSON body.
    """

    path: str
    marker: bytes
    body: Callable[[Load], Sequence[bytes]]
    """Returns the parts of the request body: the parameters, then the pieces of the input."""

    def request(self, load: Load, *, host: str, headers: dict[str, str]) -> Request:
        """Return the bytes of a request. `headers` identify the app and the user."""
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"POST {self.path} HTTP/1.1\r\nHost: {host}\r\n{fields}".encode()
        parameters, *pieces = self.body(load)
        if self.path.endswith("/tts"):
            length = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(parameters)
            return Request(head + length + parameters)
        first = head + b"Transfer-Encoding: chunked\r\n\r\n" + _chunk(parameters)
        chunks = [_chunk(piece) for piece in pieces]
        if load.input_every_s and len(chunks) > 1:
            return Request(first, [*chunks[:-1], chunks[-1] + _chunk(b"")], load.input_every_s)
        return Request(first + b"".join(chunks) + _chunk(b""))


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


def _conversation(load: Load, kind: str) -> bytes:
    return dumps(
        {
            "strategies": list(load.strategies),
            "type": kind,
            "language_code": "en-US",
            "target_language_code": "en-US",
        }
    )


def _spoken_text(load: Load) -> Sequence[bytes]:
    return [_conversation(load, "text"), _TEXT.encode()]


def _spoken_audio(load: Load) -> Sequence[bytes]:
    return [_conversation(load, "audio"), *_sound(load.audio_s)]


def _speech(load: Load) -> Sequence[bytes]:
    return [dumps({"strategies": list(load.strategies), "text": _TEXT})]


def _reading(load: Load) -> Sequence[bytes]:
    data: dict[str, Any] = {"reference_text": _TEXT, "language": "en-US"}
    return [dumps({"strategy": load.strategies[0], "data": data}), *_sound(load.audio_s)]


def _sound(seconds: float) -> list[bytes]:
    """Return a tone as base64, in pieces of 100 ms.

    The pieces are cut at multiples of 3 bytes, so that only the last one may have padding.
    """
    samples = round(_RATE * seconds)
    tone = array("h", (round(8_000 * math.sin(math.tau * at / 80)) for at in range(80)))
    pcm = (tone * (samples // 80 + 1))[:samples].tobytes()
    size = _RATE * 2 * _PIECE_MS // 1000 // 3 * 3
    return [b64encode(pcm[begin : begin + size]) for begin in range(0, len(pcm), size)]


SCENARIOS: dict[ScenarioName, Scenario] = {
    "text": Scenario("/bp/ai/conversation", b"assistant_output_chunk", _spoken_text),
    "audio": Scenario("/bp/ai/conversation", b"assistant_output_chunk", _spoken_audio),
    "tts": Scenario("/bp/ai/audio/tts", b"audio_chunk", _speech),
    "pronunciation": Scenario("/bp/ai/audio/pronunciation", b"", _reading),
}


def seconds(text: str) -> float:
    """Parse a duration such as `20ms`, `1.5s` or `2m`; a number without a unit is in seconds.

    Raise `ValueError` for anything else.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not a duration such as 20ms, 1.5s or 2m")
    return float(match[1]) * _UNITS_S[match[2]]
