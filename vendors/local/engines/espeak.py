"""espeak-ng, a small speech synthesizer for many languages, used as a C library. It is GPL-licensed."""

import ctypes
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from streams.languages import Languages, parse_tag
from vendors.local.engines.engine import Engine, Put
from vendors.local.engines.faults import Fault
from vendors.local.engines.packages import Package
from vendors.local.engines.protocols import Spoken
from vendors.local.engines.sentences import BYTES_PER_SAMPLE, synthesize

NEEDS = (Package("espeakng_loader"), Package("lameenc"))

_MAX_REQUESTS = 256
_RATE = 22_050
_DEFAULT_VOICE = "en-us"
_CHUNK_MS = 60

# speak_lib.h
_SYNCHRONOUS = 2
_PHONEME_EVENTS, _IPA, _DO_NOT_EXIT = 0x0001, 0x0002, 0x8000
_PHONEME, _END_OF_EVENTS = 7, 0
_UTF8, _PAUSE_AT_END = 0x0001, 0x1000
_WORDS_PER_MINUTE, _WORD_GAP = 1, 7
_STOP, _CONTINUE = 1, 0

_DEFAULT_PACE, _MIN_PACE = 175, 80
_GAP_UNIT_MS = 35
"""The duration of one unit of the gap between words at the minimum speed."""


class _EventId(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _EventId),
    )


class _Voice(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_void_p),
        ("identifier", ctypes.c_char_p),
    )


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


class Espeak:
    """Voices are espeak's names with an optional variant (`en-us`, `de`, `en-us+f3`), or language codes."""

    sample_rate = _RATE

    def __init__(self) -> None:
        self._engine = Engine("espeak", _Library, max_requests=_MAX_REQUESTS)

    @property
    def fault(self) -> str | None:
        return self._engine.fault

    @asynccontextmanager
    async def speak(self, text: str, *, voice: str | None, speed: float) -> AsyncIterator[AsyncIterator[Spoken]]:
        name = voice or _DEFAULT_VOICE

        def say(sentence: str, library: _Library, put: Put[Spoken]) -> None:
            library.say(sentence, name, speed, put=put)

        language = name.partition("+")[0]
        pieces = synthesize(self._engine, say, text, language=language, sample_rate=_RATE)
        with self._engine.slot():
            async with aclosing(pieces):
                yield pieces

    def close(self) -> None:
        self._engine.close()


class _Library:
    """The loaded library. Its state is global, so there is one object in a process, used by one thread."""

    def __init__(self) -> None:
        import espeakng_loader  # noqa: PLC0415 - an extra

        self._c: Any = ctypes.CDLL(espeakng_loader.get_library_path())
        data = espeakng_loader.get_data_path()
        options = _PHONEME_EVENTS | _IPA | _DO_NOT_EXIT
        rate = self._c.espeak_Initialize(_SYNCHRONOUS, _CHUNK_MS, data.encode(), options)
        if rate != _RATE:
            raise RuntimeError(f"espeak_Initialize returned {rate}")
        self._callback = _Callback(self._receive)  # Kept alive, because the library only stores a pointer.
        self._c.espeak_SetSynthCallback(self._callback)
        self._c.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_Voice))
        self._put: Put[Spoken] = lambda _: False
        self._voice: str | None = None
        self._voices = self._voices_by_code()
        self._languages = _languages_of(self._voices)
        self._variants = {path.name for path in Path(data, "voices", "!v").iterdir()}

    def say(self, text: str, voice: str, speed: float, *, put: Put[Spoken]) -> None:
        self._choose(voice)
        self._pace(_DEFAULT_PACE * speed)
        self._put = put
        raw = text.encode() + b"\0"
        self._c.espeak_Synth(raw, ctypes.c_size_t(len(raw)), 0, 1, 0, _UTF8 | _PAUSE_AT_END, None, None)

    def _choose(self, voice: str) -> None:
        """Select a voice.

        Unknown names are rejected here, because espeak would use a similar voice or stay silent.
        """
        if voice == self._voice:
            return
        code, plus, variant = voice.partition("+")
        identifier = self._voices.get(code.lower()) or self._voices.get(self._nearest(code))
        if identifier is None or (plus and variant not in self._variants):
            raise Fault(400, f"espeak has no voice {voice!r}", param="voice", code="voice_not_found")
        self._voice = None
        if self._c.espeak_SetVoiceByName(f"{identifier}{plus}{variant}".encode()):
            raise RuntimeError(f"espeak_SetVoiceByName refused {identifier}{plus}{variant}")
        self._voice = voice

    def _nearest(self, code: str) -> str:
        """Return the code of the voice for a language, or an empty string."""
        try:
            return self._languages.find(code) or ""
        except ValueError:
            return ""

    def _pace(self, words_per_minute: float) -> None:
        """Set the speed. Below espeak's minimum, longer pauses between words lower the speed further."""
        gap_ms = max(0.0, 60_000 / words_per_minute - 60_000 / _MIN_PACE)
        self._c.espeak_SetParameter(_WORDS_PER_MINUTE, max(round(words_per_minute), _MIN_PACE), 0)
        self._c.espeak_SetParameter(_WORD_GAP, round(gap_ms / _GAP_UNIT_MS), 0)

    def _voices_by_code(self) -> dict[str, str]:
        """Return the identifier of the best voice for each language code."""
        ranked: dict[str, tuple[int, str]] = {}
        listed = self._c.espeak_ListVoices(None)
        index = 0
        while listed[index]:
            voice = listed[index].contents
            identifier = voice.identifier.decode()
            for rank, code in _languages(voice.languages):
                ranked[code] = min(ranked.get(code, (rank, identifier)), (rank, identifier))
            index += 1
        return {code: identifier for code, (_, identifier) in ranked.items()}

    def _receive(self, samples: Any, count: int, events: Any) -> int:
        phonemes: list[tuple[str, int]] = []
        index = 0
        while (event := events[index]).type != _END_OF_EVENTS:
            if event.type == _PHONEME:
                symbol = event.id.string.decode(errors="ignore")
                if not symbol.startswith("("):  # A change of language, such as `(en)`.
                    phonemes.append((symbol or "_", event.audio_position))
            index += 1
        pcm = ctypes.string_at(samples, count * BYTES_PER_SAMPLE) if count else b""
        return _CONTINUE if self._put(Spoken(pcm, phonemes)) else _STOP


def _languages_of(codes: Iterable[str]) -> Languages:
    """Return the languages of espeak's codes. Some are no language tags, and those with `-x-` are dialects."""
    listed = {"nn": "nb"}
    for code in sorted(codes):
        with suppress(ValueError):
            if "-x-" not in code and parse_tag(code).language:
                listed[code] = code
    return Languages(listed, nearest=True)


def _languages(address: int) -> Iterator[tuple[int, str]]:
    """Yield priority (lower is better) and code from a list of C strings that start with their priority."""
    while rank := ctypes.string_at(address, 1)[0]:
        code = ctypes.string_at(address + 1)
        yield rank, code.decode().lower()
        address += len(code) + 2
