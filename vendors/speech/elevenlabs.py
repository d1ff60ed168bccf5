"""Speech synthesis by ElevenLabs over HTTP: raw audio, or JSON lines with audio and times of characters."""

import unicodedata
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from pydantic import Field

from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid, InvalidParameter, listed
from streams.wire.model import Matches, Model
from vendors.account import Account, SpeechSpec
from vendors.errors import Garbled, Refused
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import Incoming, VendorHttp
from vendors.json_events import JsonEvents, bytes_of, is_error, number_of, object_of
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Viseme, Visemes
from vendors.speech.languages import ELEVENLABS_MODELS, code_if_any
from vendors.speech.visemes import MAX_OFFSET_MS, visemes_of_letters

_MIN_SPEED, _MAX_SPEED = 0.7, 1.2
_FORMATS = {"mp3": "mp3_44100_128", "wav": "pcm_24000"}
_PREFIXES = {"mp3": "mp3_", "wav": "pcm_"}
_LANGUAGE_MODELS = ("eleven_flash_v2_5", "eleven_turbo_v2_5", "eleven_v3")
"""Models that accept a language. The others detect it from the text, and some reject the field."""
_DEFAULT_MODEL = "eleven_multilingual_v2"
_SETTINGS = {"stability", "similarity_boost", "style", "use_speaker_boost"}
_OutputFormat = Annotated[
    str,
    Matches(r"^(mp3_\d{4,5}_\d{2,3}|pcm_\d{4,5})$", "must be a format such as mp3_44100_128 or pcm_24000"),
]
_MAX_LINE_BYTES = 4 * 1024 * 1024


class Options(Model):
    """The settings of the voice and other vendor-specific settings of a strategy."""

    output_format: _OutputFormat | None = None
    """The vendor's name of the format. The default is `mp3_44100_128`, or `pcm_24000` for WAV."""
    stability: float | None = Field(default=None, ge=0, le=1)
    """Lower values allow more emotion, higher ones are more even. By default that of the voice."""
    similarity_boost: float | None = Field(default=None, ge=0, le=1)
    """How closely the audio follows the original voice."""
    style: float | None = Field(default=None, ge=0, le=1)
    """How much the style of the original voice is exaggerated. Values above 0 increase the latency."""
    use_speaker_boost: bool | None = None
    """Whether the similarity to the original speaker is increased, which increases the latency."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Additional request fields, such as `seed` or `apply_text_normalization`."""


def _check(options: Options, spec: SpeechSpec) -> None:
    """Raise `InvalidParameter` for an option that does not fit the other settings."""
    output_format = options.output_format
    if output_format is not None and not output_format.startswith(_PREFIXES[spec.audio_format]):
        raise InvalidParameter(f"output_format {output_format} is not for audio_format {spec.audio_format}")


class ElevenLabsSpeech:
    """One voice of one account. The speed is clamped to the vendor's range."""

    Options = Options
    check = staticmethod(_check)

    def __init__(self, http: VendorHttp, account: Account, spec: SpeechSpec) -> None:
        options = Options.of(spec.options)
        if not spec.voice:
            raise ConfigInvalid(f"{account.platform}: voice is not set")
        if not spec.voice.strip("."):  # `.` and `..` change the URL path even if quoted.
            raise InvalidParameter(f"voice {listed([spec.voice])} is invalid")
        self.check(options, spec)
        output_format = options.output_format or _FORMATS[spec.audio_format]
        self._http = http
        self._account = account
        self._connect_s = spec.connect_s
        self._timed = spec.need_viseme
        self._format = SpeechFormat(
            "audio/mpeg" if spec.audio_format == "mp3" else "audio/wav", int(output_format.split("_")[1])
        )
        path = f"/v1/text-to-speech/{quote(spec.voice, safe='')}/stream" + "/with-timestamps" * spec.need_viseme
        self._url = account.url(f"{path}?{urlencode({'output_format': output_format})}")
        key = account.api_key.get_secret_value() if account.api_key else ""
        self._headers = {**({"xi-api-key": key} if key else {}), "Content-Type": "application/json"}
        self._fields = {**_fields(account, spec, options), **options.extra}

    @asynccontextmanager
    async def speak(self, text: str) -> AsyncIterator[AsyncIterator[SpeechItem]]:
        call = Outgoing(
            self._account.platform,
            self._url,
            headers=self._headers,
            body=dumps({**self._fields, "text": text}),
            connect_s=self._connect_s,
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            is_audio = (
                response.content_type.startswith("audio/") or response.content_type == "application/octet-stream"
            )
            # JSON lines are checked as they are parsed.
            if response.content_type == "text/html" or not (is_audio or self._timed):
                raise Garbled(response.vendor, f"answered with {response.content_type[:64]}, not audio")
            items = _read_lines(response, character_count=len(text)) if self._timed else _read_body(response)
            async with aclosing(self._with_format(response, items)) as speech:
                yield speech

    async def _with_format(
        self, response: Incoming, items: AsyncGenerator[SpeechItem]
    ) -> AsyncGenerator[SpeechItem]:
        """Yield the format and, if the vendor reports it, the usage, then `items`."""
        yield self._format
        characters = response.headers.get("x-character-count", "")
        if characters.isdecimal():
            yield Usage(int(characters), 0)
        async with aclosing(items):
            async for item in items:
                yield item


def _fields(account: Account, spec: SpeechSpec, options: Options) -> dict[str, Any]:
    settings = options.model_dump(include=_SETTINGS, exclude_none=True)
    if spec.speed != 1:
        settings["speed"] = min(max(spec.speed, _MIN_SPEED), _MAX_SPEED)
    fields: dict[str, Any] = {"model_id": spec.model} if spec.model else {}
    if language := _language(account, spec):
        fields["language_code"] = language
    return fields | ({"voice_settings": settings} if settings else {})


def _language(account: Account, spec: SpeechSpec) -> str | None:
    """Return the code to send. A language that the model lacks is refused, even if the model takes no code."""
    model = spec.model or _DEFAULT_MODEL
    offered = next((languages for name, languages in ELEVENLABS_MODELS.items() if model.startswith(name)), None)
    if not spec.language_code or offered is None:
        return None
    code = code_if_any(account.platform, spec.language_code, offered, passes_on=False)
    return code if model.startswith(_LANGUAGE_MODELS) else None


async def _read_body(response: Incoming) -> AsyncGenerator[SpeechItem]:
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            yield AudioBytes(piece)


async def _read_lines(response: Incoming, *, character_count: int) -> AsyncGenerator[SpeechItem]:
    lines = TimedLines(response.vendor, character_count=character_count)
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            for item in lines.feed(piece):
                yield item
    for item in lines.end():
        yield item


class TimedLines:
    """Parses JSON lines with audio and the times of its characters. Yields mouth shapes before their audio. No I/O.

    `character_count` is the length of the spoken text. The mouth is closed once that many characters have arrived.
    """

    def __init__(self, vendor: str, *, character_count: int) -> None:
        self._vendor = vendor
        self._remaining = character_count
        self._tail = b""
        self._events = JsonEvents()
        self._end_ms = 0
        self._shape = 0

    def feed(self, piece: bytes) -> Iterator[SpeechItem]:
        """Yield the items of the lines that `piece` completes, up to the first error."""
        *lines, self._tail = (self._tail + piece).split(b"\n")
        for line in lines:
            yield from self._items(line)
        if len(self._tail) > _MAX_LINE_BYTES:
            raise Garbled(self._vendor, "sent a line that is too long")

    def end(self) -> Iterator[SpeechItem]:
        """Yield the items of a last line without a line feed, and the closed mouth."""
        yield from self._items(self._tail)
        yield from _visemes(self._closed_mouth())

    def _items(self, line: bytes) -> list[SpeechItem]:
        try:
            value = self._events.decode(line)
            if (fault := value.get("detail") or value.get("error")) and is_error(fault):
                raise _stream_error(self._vendor, fault)
            audio = bytes_of(value.get("audio_base64"))
        except ValueError:
            raise Garbled(self._vendor, "sent a malformed line") from None
        shapes = self._shapes(value)
        return [*_visemes(shapes), *([AudioBytes(audio)] if audio else [])]

    def _shapes(self, value: Mapping[str, Any]) -> list[Viseme]:
        written = _timed_characters(value.get("alignment"))
        spoken = _timed_characters(value.get("normalized_alignment"))
        if not spoken or (_has_other_script(written) and not _has_other_script(spoken)):
            spoken = written  # The vendor romanizes some texts. Clients know the characters of the original.
        self._remaining -= len(written)
        timed: list[tuple[str, int, int]] = []
        for letter, begin_ms, end_ms in spoken:
            begin_ms = max(begin_ms, self._end_ms)  # noqa: PLW2901 - times must not decrease
            self._end_ms = max(end_ms, begin_ms)
            timed.append((letter, begin_ms, self._end_ms))
        shapes = visemes_of_letters(timed)
        if shapes:
            self._shape = shapes[-1].viseme_id
        return [*shapes, *(self._closed_mouth() if self._remaining <= 0 else ())]

    def _closed_mouth(self) -> list[Viseme]:
        shape, self._shape = self._shape, 0
        return [Viseme(self._end_ms, 0)] if shape else []


def _timed_characters(alignment: Any) -> list[tuple[str, int, int]]:
    """Return characters with their begin and end in ms. It is empty for an alignment that cannot be read whole."""
    alignment = object_of(alignment)
    names = ("characters", "character_start_times_seconds", "character_end_times_seconds")
    columns = [alignment.get(name) for name in names]
    if not all(isinstance(column, list) for column in columns) or len({*map(len, columns)}) > 1:
        return []
    timed = [(letter, _ms(begin), _ms(end)) for letter, begin, end in zip(*columns, strict=True)]
    found = [(letter, begin, end) for letter, begin, end in timed if begin is not None and end is not None]
    return found if len(found) == len(timed) and all(isinstance(letter, str) for letter, _, _ in found) else []


def _ms(seconds: Any) -> int | None:
    number = number_of(seconds)
    return round(number * 1000) if number is not None and abs(number * 1000) <= MAX_OFFSET_MS else None


def _has_other_script(timed: list[tuple[str, int, int]]) -> bool:
    """Return whether there are letters other than Latin ones."""
    letters = (letter for text, _, _ in timed for letter in text if letter.isalpha() and not letter.isascii())
    return any(not unicodedata.name(letter, "").startswith("LATIN") for letter in letters)


def _visemes(shapes: list[Viseme]) -> list[SpeechItem]:
    return [Visemes(shapes)] if shapes else []


def _stream_error(vendor: str, fault: Any) -> Refused:
    """Return the error for an error object inside a 200 response."""
    code = str(fault.get("status") or fault.get("code") or "") if isinstance(fault, dict) else ""
    message = str(fault.get("message") or code) if isinstance(fault, dict) else str(fault)
    return Refused(
        vendor,
        f"broke off with an error: {' '.join(message.split())[:200]}",
        retryable=code in {"system_busy", "too_many_concurrent_requests"},
        extra={"code": code[:64]} if code else None,
    )
