"""Speech of vendor A: over HTTP, or over a socket where mouth shapes are wanted.

HTTP keeps its connection for the next sentence and has its end mark, but says nothing of times; only the socket
does, and it is opened anew for every call. So each is used where it is the better one.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from streams.wire.errors import ConfigInvalid
from streams.wire.model import Model
from vendors.account import Account, SpeechSpec
from vendors.errors import Empty, Garbled
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Viseme, Visemes
from vendors.speech.azure_frames import TICKS_PER_MS, Frame
from vendors.speech.azure_line import Line, http_url, json_body, key_header, line_to, socket_url
from vendors.speech.azure_ssml import Manner, ssml
from vendors.transport import Incoming, Outgoing, VendorHttp

_MP3 = {16_000: 128, 24_000: 96, 48_000: 192}
"""Bit rates in kbit/s, constant, by sample rate."""
_CUT_MS = 599_000
"""Audio that would be longer than 10 minutes is cut there without a word."""
_HELD_MS = 10_000
_STYLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class SpeechOptions(Model):
    """How the voice plays; a style that the voice does not have is passed over by the vendor."""

    style: str | None = None
    """Such as `cheerful`. Absent: the strategy's `prompt`, where that is a single word."""
    style_degree: float | None = Field(default=None, ge=0.01, le=2)
    role: str | None = None
    sample_rate: Literal[16_000, 24_000, 48_000] = 24_000


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
        self._manner = Manner(
            voice=spec.voice,
            speed=spec.speed,
            language=spec.language_code,
            style=options.style or (spec.prompt if _STYLE_NAME.fullmatch(spec.prompt) else None),
            style_degree=options.style_degree,
            role=options.role,
        )

    @asynccontextmanager
    async def speak(self, text: str) -> AsyncIterator[AsyncIterator[SpeechItem]]:
        markup = ssml(text, self._manner)
        if not self._spec.need_viseme:
            async with self._http.stream(self._call(markup)) as answer:
                if not answer.content_type.startswith("audio/"):
                    raise Garbled(answer.vendor, f"answered with {answer.content_type[:64]}, not audio")
                async with aclosing(self._whole(_plain(answer), answer.vendor)) as items:
                    yield items
            return
        url = socket_url(self._account, "/tts/cognitiveservices/websocket/v1")
        async with line_to(self._http, self._account, url, connect_s=self._spec.connect_s) as line:
            await line.configure()
            await line.say_json("synthesis.context", _context(self._coding.name))
            await line.say("ssml", markup, content_type="application/ssml+xml")
            async with aclosing(self._whole(_timed(line, self._coding), line.vendor)) as items:
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
        )

    async def _whole(self, items: AsyncGenerator[SpeechItem], vendor: str) -> AsyncGenerator[SpeechItem]:
        """All of `items`, once it is seen that they are all."""
        yield SpeechFormat("audio/mpeg" if self._spec.audio_format == "mp3" else "audio/wav", self._coding.rate)
        size = 0
        async with aclosing(items):
            async for item in items:
                size += len(item.audio) if isinstance(item, AudioBytes) else 0
                yield item
        if not size:
            raise Empty(vendor, "answered with no audio")
        if size >= self._coding.bytes_in(_CUT_MS):
            raise Garbled(vendor, "cut its audio off at 10 minutes")


@dataclass(frozen=True, slots=True)
class _Coding:
    """A form of audio, by the vendor's name for it."""

    name: str
    rate: int
    bytes_per_s: int

    @classmethod
    def of(cls, rate: int, *, mp3: bool) -> "_Coding":
        if mp3:
            kbps = _MP3[rate]
            return cls(f"audio-{rate // 1000}khz-{kbps}kbitrate-mono-mp3", rate, kbps * 125)
        return cls(f"raw-{rate // 1000}khz-16bit-mono-pcm", rate, rate * 2)

    def bytes_in(self, duration_ms: int) -> int:
        """Whole samples."""
        return duration_ms * self.bytes_per_s // 1000 & ~1


async def _plain(answer: Incoming) -> AsyncGenerator[SpeechItem]:
    async with aclosing(answer.pieces()) as pieces:
        async for piece in pieces:
            yield AudioBytes(piece)


def _context(output_format: str) -> dict[str, Any]:
    wanted = {
        "bookmarkEnabled": False,
        "punctuationBoundaryEnabled": False,
        "sentenceBoundaryEnabled": False,
        "sessionEndEnabled": False,
        "visemeEnabled": True,
        "wordBoundaryEnabled": False,
    }
    audio = {"metadataOptions": wanted, "outputFormat": output_format}
    return {"synthesis": {"audio": audio, "language": {"autoDetection": False}}}


async def _timed(line: Line, coding: _Coding) -> AsyncGenerator[SpeechItem]:
    aligned = Aligned(coding.bytes_in)
    async with aclosing(line.frames()) as frames:
        async for frame in frames:
            match frame.path:
                case "audio":
                    items = aligned.hear(frame.body)
                case "audio.metadata":
                    items = aligned.see(_visemes(line.vendor, frame))
                case "turn.end":
                    items = aligned.end()
                case _:
                    items = []
            for item in items:
                yield item
            if frame.path == "turn.end":
                return


def _visemes(vendor: str, frame: Frame) -> list[Viseme]:
    """Those of one message; a shape that is animated comes many times, and counts once, with its last picture."""
    try:
        return [
            Viseme(int(told["Data"]["Offset"]) // TICKS_PER_MS, int(told["Data"]["VisemeId"]))
            for told in json_body(vendor, frame).get("Metadata", [])
            if told["Type"] == "Viseme" and told["Data"].get("IsLastAnimation") is not False
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Garbled(vendor, "sent metadata of an unknown form") from None


@dataclass(slots=True)
class Aligned:
    """Audio and mouth shapes that arrive out of step: shapes go on at once, audio no further than they reach.

    Beyond ten seconds audio does not wait: there are voices without shapes.
    """

    bytes_in: Callable[[int], int]
    _held: bytearray = field(default_factory=bytearray)
    _passed: int = 0
    _seen_ms: int = 0

    def hear(self, audio: bytes) -> list[SpeechItem]:
        self._held += audio
        return self._due()

    def see(self, visemes: list[Viseme]) -> list[SpeechItem]:
        if not visemes:
            return []
        self._seen_ms = max(self._seen_ms, visemes[-1].offset_ms)
        return [Visemes(visemes), *self._due()]

    def end(self) -> list[SpeechItem]:
        return self._pass(len(self._held))

    def _due(self) -> list[SpeechItem]:
        covered = self.bytes_in(self._seen_ms) - self._passed
        surplus = len(self._held) - self.bytes_in(_HELD_MS)
        return self._pass(min(len(self._held), max(covered, surplus)))

    def _pass(self, size: int) -> list[SpeechItem]:
        if size <= 0:
            return []
        audio = bytes(self._held[:size])
        del self._held[:size]
        self._passed += size
        return [AudioBytes(audio)]
