"""What sandboxed vendors say and hear: the same for the same request, and easy to tell apart.

Speech is a tone, 15 characters a second, whose pitch is its text's.
"""

import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from streams.audio import MP3, WAV, parse_wav, pcm_seconds, sniff
from streams.mp3 import Mp3Joiner
from vendors.local import scripted
from vendors.local.encoding import Mp3
from vendors.protocols import ChatMessage

CHARACTERS_A_SECOND = 15
PIECE_MS = 100
"""Of speech in one piece of a stream."""

_LEAST_SECONDS = 0.2
_LOUDNESS = 8_000
_SILENT = 200
"""No sample of what counts as silence is louder."""
_WORD = re.compile(r"\s*\S+\s*")


def reply(messages: Sequence[ChatMessage]) -> str:
    """What a chat model says: as the scripted model of this machine does."""
    return scripted.answer(messages)


def words(text: str) -> list[str]:
    """`text` in words with the blanks around them; joined they are `text`, unless it is blank."""
    return _WORD.findall(text)


def tokens(text: str) -> int:
    """A word is a token."""
    return len(text.split())


def speech_ms(text: str, *, speed: float = 1.0) -> int:
    """How long `text` is spoken."""
    return round(1000 * max(_LEAST_SECONDS, len(text) / CHARACTERS_A_SECOND / speed))


def speech(text: str, sample_rate: int, *, speed: float = 1.0) -> bytes:
    """`text` as 16-bit mono PCM."""
    samples = speech_ms(text, speed=speed) * sample_rate // 1000
    period = sample_rate // (120 + crc32(text.encode()) % 200)
    wave = array("h", (round(_LOUDNESS * math.sin(math.tau * at / period)) for at in range(period)))
    return (wave.tobytes() * (samples // period + 1))[: samples * 2]


def mp3(pcm: bytes, sample_rate: int) -> bytes:
    encoder = Mp3(sample_rate)
    return encoder.encode(pcm) + encoder.finish()


def pieces(audio: bytes, whole_ms: int, *, piece_ms: int = PIECE_MS) -> Iterator[bytes]:
    """`audio`, which plays for `whole_ms`, in pieces that play for about `piece_ms`; PCM is not cut in a sample."""
    size = max(2, len(audio) * piece_ms // max(1, whole_ms) // 2 * 2)
    for begin in range(0, len(audio), size):
        yield audio[begin : begin + size]


@dataclass(frozen=True, slots=True)
class Timed:
    """A piece of a text and when it is spoken; `at` is where it stands in the text."""

    text: str
    at: int
    begin_ms: int
    end_ms: int


def timed_characters(text: str, whole_ms: int) -> list[Timed]:
    """Each character for as long as any other."""
    count = max(1, len(text))
    return [
        Timed(character, at, at * whole_ms // count, (at + 1) * whole_ms // count)
        for at, character in enumerate(text)
    ]


def timed_words(text: str, whole_ms: int) -> list[Timed]:
    """Words without the blanks around them."""
    count = max(1, len(text))
    return [
        Timed(word[0], word.start(), word.start() * whole_ms // count, word.end() * whole_ms // count)
        for word in re.finditer(r"\S+", text)
    ]


@dataclass(frozen=True, slots=True)
class Recording:
    """What somebody sent to be heard."""

    seconds: float
    silent: bool

    def transcript(self, text: str | None) -> str:
        """What is heard in it: nothing in silence, else `text`, or how long it was."""
        if self.silent:
            return ""
        return f"I heard {self.seconds:.1f} seconds of sound." if text is None else text


def recording(audio: bytes, *, sample_rate: int | None = None) -> Recording | None:
    """What `audio` is: raw 16-bit mono PCM where it has a `sample_rate`, else a file; none where it is no sound."""
    if sample_rate is not None:
        return Recording(pcm_seconds(len(audio), sample_rate), _silent(audio))
    mime_type = sniff(audio)
    if mime_type == WAV:
        return _wav(audio)
    if mime_type == MP3:
        joiner = Mp3Joiner()
        joiner.feed(audio)
        joiner.end()
        return Recording(joiner.duration_ms / 1000, silent=False)
    return Recording(len(audio) / 4_000, silent=False) if mime_type else None  # 32 kbit/s


def _wav(audio: bytes) -> Recording | None:
    try:
        told = parse_wav(audio)
    except ValueError:
        return None
    if told is None or told.bits != 16:
        return None
    end = None if told.data_bytes is None else told.data_offset + told.data_bytes
    samples = audio[told.data_offset : end]
    seconds = pcm_seconds(len(samples), told.sample_rate, channels=told.channels)
    return Recording(seconds, _silent(samples))


def _silent(pcm: bytes) -> bool:
    samples = array("h", pcm[: len(pcm) // 2 * 2])
    return not samples or (max(samples) <= _SILENT and min(samples) >= -_SILENT)
