"""Speech synthesis by vendor A over HTTP, or over a WebSocket if mouth shapes are requested.

HTTP reuses connections and marks the end of the audio, but has no mouth shapes. A WebSocket has them, but every
call opens a new connection.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from streams.wire.errors import ConfigInvalid
from streams.wire.model import Model
from vendors.account import Account, SpeechSpec
from vendors.errors import Empty, Garbled
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import Incoming, VendorHttp
from vendors.json_events import number_of, object_of, objects_of
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Viseme, Visemes
from vendors.speech.azure.frames import TICKS_PER_MS
from vendors.speech.azure.languages import SYNTHESIS
from vendors.speech.azure.sockets import (
    SpeechSocket,
    http_url,
    json_body,
    key_header,
    open_speech_socket,
    socket_url,
)
from vendors.speech.azure.ssml import SpeakingOptions, ssml, takes_language
from vendors.speech.languages import code_if_any
from vendors.speech.visemes import MAX_OFFSET_MS

_MP3_KBPS = {16_000: 128, 24_000: 96, 48_000: 192}
"""Constant bit rates in kbit/s by sample rate."""
_CUT_MS = 599_000
"""The vendor cuts audio off at 10 minutes without an error."""
_MAX_HELD_MS = 10_000
_SHAPES = frozenset(range(22))
_STYLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class SpeechOptions(Model):
    """Speaking style and format. The vendor ignores a style that the voice does not have."""

    style: str | None = None
    """Such as `cheerful`. The default is the strategy's `prompt` if it is a single word."""
    style_degree: float | None = Field(default=None, ge=0.01, le=2)
    """The intensity of the style. The vendor's default is 1."""
    role: str | None = None
    """The role that the voice plays, such as `YoungAdultFemale`, if the voice has roles."""
    sample_rate: Literal[16_000, 24_000, 48_000] = 24_000
    """Sample rate of the audio in Hz."""


class AzureSpeech:
    """One voice of one account."""

    Options = SpeechOptions

    def __init__(self, http: VendorHttp, account: Account, spec: SpeechSpec) -> None:
        options = SpeechOptions.of(spec.options)
        if not spec.voice:
            raise ConfigInvalid(f"{account.platform}: voice is not set")
        self._http = http
        self._account = account
        self._spec = spec
        self._coding = _Coding.of(options.sample_rate, mp3=spec.audio_format == "mp3")
        self._speaking_options = SpeakingOptions(
            voice=spec.voice,
            speed=spec.speed,
            language=_language(account, spec),
            style=options.style or (spec.prompt if _STYLE_NAME.fullmatch(spec.prompt) else None),
            style_degree=options.style_degree,
            role=options.role,
        )

    @asynccontextmanager
    async def speak(self, text: str) -> AsyncIterator[AsyncIterator[SpeechItem]]:
        markup = ssml(text, self._speaking_options)
        if not self._spec.need_viseme:
            async with self._http.stream(self._call(markup)) as response:
                if not response.content_type.startswith("audio/"):
                    raise Garbled(response.vendor, f"answered with {response.content_type[:64]}, not audio")
                async with aclosing(self._checked(_read_body(response), response.vendor)) as items:
                    yield items
            return
        url = socket_url(self._account, "/tts/cognitiveservices/websocket/v1")
        async with open_speech_socket(self._http, self._account, url, connect_s=self._spec.connect_s) as socket:
            await socket.configure()
            await socket.send_json("synthesis.context", _context(self._coding.name))
            await socket.send_text("ssml", markup, content_type="application/ssml+xml")
            async with aclosing(self._checked(_read_socket(socket, self._coding), socket.vendor)) as items:
                yield items

    def _call(self, markup: str) -> Outgoing:
        return Outgoing(
            self._account.platform,
            http_url(self._account, "/tts/cognitiveservices/v1"),
            headers={
                **key_header(self._account),
                "Content-Type": "application/ssml+xml",
                "X-Microsoft-OutputFormat": self._coding.name,
                "User-Agent": "Parley",
            },
            body=markup.encode(),
            connect_s=self._spec.connect_s,
            repeat=Repeat.SAFE,
        )

    async def _checked(self, items: AsyncGenerator[SpeechItem], vendor: str) -> AsyncGenerator[SpeechItem]:
        """Yield the format and `items`. Raise an error if the audio is empty or cut off."""
        yield SpeechFormat("audio/mpeg" if self._spec.audio_format == "mp3" else "audio/wav", self._coding.rate)
        size = 0
        async with aclosing(items):
            async for item in items:
                size += len(item.audio) if isinstance(item, AudioBytes) else 0
                yield item
        if not size:
            raise Empty(vendor, "sent no audio")
        if size >= self._coding.bytes_in(_CUT_MS):
            raise Garbled(vendor, "cut its audio off at 10 minutes")


def _language(account: Account, spec: SpeechSpec) -> str | None:
    """Return the locale, unless the voice has one and speaks no other."""
    if not spec.language_code or not takes_language(spec.voice):
        return None
    return code_if_any(account.platform, spec.language_code, SYNTHESIS, passes_on=True)


@dataclass(frozen=True, slots=True)
class _Coding:
    """An audio format with the vendor's name for it."""

    name: str
    rate: int
    bytes_per_s: int

    @classmethod
    def of(cls, rate: int, *, mp3: bool) -> "_Coding":
        if mp3:
            kbps = _MP3_KBPS[rate]
            return cls(f"audio-{rate // 1000}khz-{kbps}kbitrate-mono-mp3", rate, kbps * 125)
        return cls(f"raw-{rate // 1000}khz-16bit-mono-pcm", rate, rate * 2)

    def bytes_in(self, duration_ms: int) -> int:
        """Return the size of that much audio, in bytes of complete samples."""
        return duration_ms * self.bytes_per_s // 1000 & ~1


async def _read_body(response: Incoming) -> AsyncGenerator[SpeechItem]:
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            yield AudioBytes(piece)


def _context(output_format: str) -> dict[str, Any]:
    metadata_options = {
        "bookmarkEnabled": False,
        "punctuationBoundaryEnabled": False,
        "sentenceBoundaryEnabled": False,
        "sessionEndEnabled": False,
        "visemeEnabled": True,
        "wordBoundaryEnabled": False,
    }
    audio = {"metadataOptions": metadata_options, "outputFormat": output_format}
    return {"synthesis": {"audio": audio, "language": {"autoDetection": False}}}


async def _read_socket(socket: SpeechSocket, coding: _Coding) -> AsyncGenerator[SpeechItem]:
    aligner = AudioAligner(coding.bytes_in)
    async with aclosing(socket.frames()) as frames:
        async for frame in frames:
            match frame.path:
                case "audio" if frame.is_binary:
                    items = aligner.add_audio(frame.body)
                case "audio.metadata":
                    items = aligner.add_visemes([*_visemes(json_body(socket.vendor, frame))])
                case "turn.end":
                    items = aligner.end()
                case _:
                    items = []
            for item in items:
                yield item
            if frame.path == "turn.end":
                return


def _visemes(metadata: Mapping[str, Any]) -> Iterator[Viseme]:
    """Yield the visemes of one message. An animated viseme is repeated; only its last animation counts."""
    for entry in objects_of(metadata.get("Metadata")):
        data = object_of(entry.get("Data"))
        ticks, shape = number_of(data.get("Offset")), number_of(data.get("VisemeId"))
        if entry.get("Type") != "Viseme" or data.get("IsLastAnimation") is False or ticks is None:
            continue
        if shape in _SHAPES and 0 <= ticks <= MAX_OFFSET_MS * TICKS_PER_MS:
            yield Viseme(int(ticks) // TICKS_PER_MS, int(shape))


@dataclass(slots=True)
class AudioAligner:
    """Synchronizes audio and mouth shapes: audio is held back until the mouth shapes for it have arrived.

    At most ten seconds of audio are held back, because some voices have no mouth shapes.
    """

    bytes_in: Callable[[int], int]
    _held: bytearray = field(default_factory=bytearray)
    _taken_bytes: int = 0
    _covered_ms: int = 0

    def add_audio(self, audio: bytes) -> list[SpeechItem]:
        self._held += audio
        return self._take_ready()

    def add_visemes(self, visemes: list[Viseme]) -> list[SpeechItem]:
        if not visemes:
            return []
        self._covered_ms = max(self._covered_ms, visemes[-1].offset_ms)
        return [Visemes(visemes), *self._take_ready()]

    def end(self) -> list[SpeechItem]:
        return self._take(len(self._held))

    def _take_ready(self) -> list[SpeechItem]:
        covered = self.bytes_in(self._covered_ms) - self._taken_bytes
        surplus = len(self._held) - self.bytes_in(_MAX_HELD_MS)
        return self._take(min(len(self._held), max(covered, surplus)))

    def _take(self, size: int) -> list[SpeechItem]:
        if size <= 0:
            return []
        audio = bytes(self._held[:size])
        del self._held[:size]
        self._taken_bytes += size
        return [AudioBytes(audio)]
