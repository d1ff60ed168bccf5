"""The content of the sandbox's answers, which depends only on the request.

Speech is a tone with a length of one second per 15 characters. Its pitch depends on the text.
"""

import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from streams.audio.audio import parse_wav, pcm_seconds
from streams.audio.durations import duration_s
from streams.audio.formats import sniff
from streams.audio.mp3 import Mp3Joiner
from streams.audio.signatures import AMR, AMR_WB, FLAC, MP3, MP4, OGG, WAV, WEBM
from vendors.local.endpoints.encoding import Mp3
from vendors.local.engines import scripted
from vendors.protocols import ChatMessage

CHARACTERS_A_SECOND = 15
PIECE_MS = 100
"""Length of a piece of streamed speech."""

_ESTIMATED = frozenset({FLAC, MP4, OGG, WEBM})
_MIN_S = 0.2
_LOUDNESS = 8_000
_SILENT = 200
"""The highest absolute sample value that counts as silence."""
_WORD = re.compile(r"\s*\S+\s*")


def reply(messages: Sequence[ChatMessage]) -> str:
    """Return the answer of a chat model, which is that of `vendors.local.engines.scripted`."""
    return scripted.answer(messages)


def words(text: str) -> list[str]:
    """Split `text` into words with the white space around them. Joined, they equal `text` unless it is blank."""
    return _WORD.findall(text)


def tokens(text: str) -> int:
    """Return the number of tokens in `text`. Every word is one token."""
    return len(text.split())


def speech_ms(text: str, *, speed: float = 1.0) -> int:
    """Return the length of the speech for `text` in milliseconds."""
    return round(1000 * max(_MIN_S, len(text) / CHARACTERS_A_SECOND / speed))


def speech(text: str, sample_rate: int, *, speed: float = 1.0) -> bytes:
    """Return the speech for `text` as 16-bit mono PCM."""
    samples = speech_ms(text, speed=speed) * sample_rate // 1000
    period = sample_rate // (120 + crc32(text.encode()) % 200)
    wave = array("h", (round(_LOUDNESS * math.sin(math.tau * at / period)) for at in range(period)))
    return (wave.tobytes() * (samples // period + 1))[: samples * 2]


def mp3(pcm: bytes, sample_rate: int) -> bytes:
    encoder = Mp3(sample_rate)
    return encoder.encode(pcm) + encoder.finish()


def pieces(audio: bytes, whole_ms: int, *, piece_ms: int = PIECE_MS) -> Iterator[bytes]:
    """Split `audio`, which plays for `whole_ms`, into pieces of about `piece_ms`. PCM samples are not split."""
    size = max(2, len(audio) * piece_ms // max(1, whole_ms) // 2 * 2)
    for begin in range(0, len(audio), size):
        yield audio[begin : begin + size]


@dataclass(frozen=True, slots=True)
class Timed:
    """A part of a text at the offset `at`, and the time at which it is spoken."""

    text: str
    at: int
    begin_ms: int
    end_ms: int


def timed_characters(text: str, whole_ms: int) -> list[Timed]:
    """Return the times of all characters, which are spoken at a constant pace."""
    count = max(1, len(text))
    return [
        Timed(character, at, at * whole_ms // count, (at + 1) * whole_ms // count)
        for at, character in enumerate(text)
    ]


def timed_words(text: str, whole_ms: int) -> list[Timed]:
    """Return the times of all words, without the white space around them."""
    count = max(1, len(text))
    return [
        Timed(word[0], word.start(), word.start() * whole_ms // count, word.end() * whole_ms // count)
        for word in re.finditer(r"\S+", text)
    ]


@dataclass(frozen=True, slots=True)
class Recording:
    """The properties of an uploaded recording."""

    seconds: float
    silent: bool

    def transcript(self, text: str | None) -> str:
        """Return the transcript: empty for silence, otherwise `text`, or a sentence about the length."""
        if self.silent:
            return ""
        return f"I heard {self.seconds:.1f} seconds of sound." if text is None else text


def recording(audio: bytes, *, sample_rate: int | None = None) -> Recording | None:
    """Return the properties of an audio file, or of raw 16-bit mono PCM if `sample_rate` is given.

    Return None if `audio` is not an audio file.
    """
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
    if mime_type in {AMR, AMR_WB}:
        return Recording(duration_s(audio, mime_type) or 0.0, silent=False)
    return Recording(len(audio) / 4_000, silent=False) if mime_type in _ESTIMATED else None  # 32 kbit/s


def _wav(audio: bytes) -> Recording | None:
    try:
        header = parse_wav(audio)
    except ValueError:
        return None
    if header is None or header.bits != 16:
        return None
    end = None if header.data_bytes is None else header.data_offset + header.data_bytes
    samples = audio[header.data_offset : end]
    seconds = pcm_seconds(len(samples), header.sample_rate, channels=header.channels)
    return Recording(seconds, _silent(samples))


def _silent(pcm: bytes) -> bool:
    samples = array("h", pcm[: len(pcm) // 2 * 2])
    return not samples or (max(samples) <= _SILENT and min(samples) >= -_SILENT)
