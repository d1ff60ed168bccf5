"""Audio that arrives in pieces with pauses, and the guard that checks it."""

from functools import cache

from prometheus_client import REGISTRY

from tests.streams.audio.mp3_files import tone
from vendors.protocols import SpeechFormat
from vendors.sandbox.content import mp3
from vendors.speech.guard import Guard, RemainingAttempts

RATE = 24_000
WAV = SpeechFormat("audio/wav", RATE)


def remaining_of(left: int) -> RemainingAttempts:
    """Return the remaining attempts of the first one, which is running, while `left` more follow."""
    remaining = RemainingAttempts()
    for _ in range(left + 1):
        remaining.register()
    remaining.trying(1).__enter__()
    return remaining


def guard_of(*, left: int = 1, text: str = "Hello", factor: float = 1.2) -> Guard:
    return Guard("acme", text, factor=factor, remaining=remaining_of(left))


def coded(pcm: bytes, kind: SpeechFormat) -> bytes:
    return pcm if kind is WAV else mp3(pcm, RATE)


@cache
def speech(seconds: float, kind: SpeechFormat = WAV) -> bytes:
    return coded(tone(seconds=seconds, sample_rate=RATE), kind)


def slow_audio() -> float:
    return REGISTRY.get_sample_value("parley_slow_audio_total", {"vendor": "acme"}) or 0
