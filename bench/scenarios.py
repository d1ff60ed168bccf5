"""What a load asks for: the requests of a scenario, as bytes, and how their answers are read."""

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
    """So many streams, at once one after another (`at_once`) or as they arrive (`rate` per second).

    It ends after `streams` of them, or begins none after `for_s`.
    """

    name: str
    strategies: Sequence[str]
    scenario: ScenarioName = "text"
    streams: int = 0
    for_s: float = 0
    at_once: int = 0
    over_s: float = 0
    """Over which the first `at_once` begin."""
    rate: float = 0
    arrivals: Arrivals = "random"
    audio_s: float = 2
    """Of sound in a request."""
    input_every_s: float = 0
    """Between two pieces of that sound, 100 ms each; 0: all at once."""
    read_every: int = 1
    """Of so many streams one is read in full."""
    timeout_s: float = 300

    def parts(self, count: int) -> list["Load"]:
        """The same load for several generators."""
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
    """`first` goes at once, each of `pieces` after a pause of `every_s`."""

    first: bytes
    pieces: Sequence[bytes] = field(default=())
    every_s: float = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """`marker` names the event of the first output; a scenario without one is answered in one piece of JSON."""

    path: str
    marker: bytes
    body: Callable[[Load], Sequence[bytes]]
    """Of the request: its parameters, then its input in pieces."""

    def request(self, load: Load, *, host: str, headers: dict[str, str]) -> Request:
        """The bytes of a request by that user."""
        told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"POST {self.path} HTTP/1.1\r\nHost: {host}\r\n{told}".encode()
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
    """A tone as base64 in pieces, each cut at a multiple of 3 bytes."""
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
    """`20ms`, `1.5s`, `2m`, or a number of seconds."""
    given = _DURATION.fullmatch(text)
    if given is None:
        raise ValueError(f"{text} is no duration such as 20ms, 1.5s or 2m")
    return float(given[1]) * _UNITS_S[given[2]]
