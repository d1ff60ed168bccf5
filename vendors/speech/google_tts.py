"""Speech synthesis by Google Cloud. Long texts are split into several requests; times come from marks in SSML."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any
from xml.sax.saxutils import escape

from pydantic import Field

from streams.audio.audio import PCM, parse_wav, pcm_seconds
from streams.audio.mp3 import Mp3Joiner
from streams.languages import parse_tag
from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.account import Account, SpeechSpec
from vendors.errors import Garbled
from vendors.google import GoogleHttp, response_object
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp
from vendors.json_events import bytes_of, number_of, objects_of
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Visemes
from vendors.speech.languages import GOOGLE_SYNTHESIS, code_if_any
from vendors.speech.visemes import MAX_OFFSET_MS, spread

_SERVICE = "texttospeech"
_PART_BYTES = 900
"""The size of the text in one request. Much longer sentences are rejected, and smaller parts arrive sooner."""
_MARKUP_FACTOR = 5
"""How many times as long as the text its SSML may be. The vendor's limit is 5,000 bytes."""
_MARK_BYTES = len('<mark name="w000"/>')
_PIECE_BYTES = 32 * 1024
_MAX_SPEED = 2.0
_MAX_RESPONSE_BYTES = 32 * 1024 * 1024
_WORD = re.compile(r"[^\s。！？，、；：]{1,60}[。！？，、；：]{0,60} ?|[。！？，、；：]{1,60} ?")  # noqa: RUF001 - scripts without spaces
_SENTENCE_END = re.compile(r"[.!?…。！？]['\"”’)\]]* ?$")  # noqa: RUF001
_LOCALE = re.compile(r"([a-z]{2,3}(?:-[A-Z][a-z]{3})?-(?:[A-Z]{2}|\d{3}))-")
_WITHOUT_MARKS = re.compile(r"Chirp|Journey|Studio")
"""Voices that do not support marks. Voices of a separate model, such as Gemini's, do not either."""


class Options(Model):
    """The vendor-specific settings of a strategy."""

    sample_rate: int = Field(default=24_000, ge=8_000, le=48_000)
    """Sample rate of the audio in Hz."""
    pitch: float | None = Field(default=None, ge=-20, le=20)
    """Semitones above the normal pitch of the voice, or below it if negative."""
    volume_gain_db: float | None = Field(default=None, ge=-96, le=16)
    """Volume in dB relative to the normal volume of the voice."""
    effects: list[str] = Field(default_factory=list, max_length=100)
    """Device profiles, such as `handset-class-device`."""


class GoogleSpeech:
    """One voice of one account.

    `model` is only set for voices of a separate model, such as `gemini-2.5-flash-tts`.
    """

    Options = Options

    def __init__(self, http: VendorHttp, account: Account, spec: SpeechSpec) -> None:
        options = Options.of(spec.options)
        self._http = GoogleHttp(http, account)
        self._account = account
        self._spec = spec
        self._mp3 = spec.audio_format == "mp3"
        self._rate = options.sample_rate
        self._voice = _voice(account, spec)
        self._config = _audio_config(spec, options)
        self._marked = spec.need_viseme and not spec.model and not _WITHOUT_MARKS.search(spec.voice)

    @asynccontextmanager
    async def speak(self, text: str) -> AsyncIterator[AsyncIterator[SpeechItem]]:
        text_parts = split_text(text, marked=self._marked)
        first = await self._synthesize(text_parts[0]) if text_parts else {}
        async with aclosing(self._items(text_parts, first)) as items:
            yield items

    async def _items(
        self, text_parts: Sequence[Sequence[str]], response: Mapping[str, Any]
    ) -> AsyncGenerator[SpeechItem]:
        """Yield the items of all parts. Each response is an audio file; their audio is joined to one file."""
        joined = JoinedMp3() if self._mp3 else JoinedPcm(self._account.platform, self._rate)
        for number, words in enumerate(text_parts):
            if number:
                response = await self._synthesize(words)
            begin_ms = joined.duration_ms
            audio = joined.add(_audio(self._account.platform, response))
            if not number:
                yield SpeechFormat("audio/mpeg" if self._mp3 else "audio/wav", joined.sample_rate or self._rate)
            end_ms = joined.duration_ms
            if spans := self._spans(words, response, begin_ms=begin_ms, end_ms=end_ms):
                closing = [(".", end_ms, end_ms)] if words is text_parts[-1] else []
                yield Visemes(spread([*spans, *closing]))
            for at in range(0, len(audio), _PIECE_BYTES):
                yield AudioBytes(audio[at : at + _PIECE_BYTES])

    def _spans(
        self, words: Sequence[str], response: Mapping[str, Any], *, begin_ms: int, end_ms: int
    ) -> list[tuple[str, int, int]]:
        """Return the words with their times in the joined audio.

        A word without a time is joined to the previous one.
        """
        first_ms = begin_ms
        times_ms = _times_ms(response)
        timed_words: list[tuple[str, int]] = []
        for number, word in enumerate(words):
            at_ms = times_ms.get(f"w{number}")
            if at_ms is not None:
                begin_ms = min(max(begin_ms, first_ms + at_ms), end_ms)
                timed_words.append((word, begin_ms))
            elif timed_words:
                timed_words[-1] = (timed_words[-1][0] + word, timed_words[-1][1])
        ends = [*(at_ms for _, at_ms in timed_words[1:]), end_ms]
        return [(text, at_ms, until_ms) for (text, at_ms), until_ms in zip(timed_words, ends, strict=False)]

    async def _synthesize(self, words: Sequence[str]) -> dict[str, Any]:
        request: dict[str, Any] = {"voice": self._voice, "audioConfig": self._config}
        if self._marked:
            request |= {"input": {"ssml": _ssml(words)}, "enableTimePointing": ["SSML_MARK"]}
        else:
            prompt = {"prompt": self._spec.prompt} if self._spec.prompt and self._spec.model else {}
            request["input"] = {"text": "".join(words), **prompt}
        version = "v1beta1" if self._marked else "v1"
        call = Outgoing(
            self._account.platform,
            self._account.url(f"/{version}/text:synthesize").replace("{service}", _SERVICE),
            headers={"Content-Type": "application/json"},
            body=dumps(request),
            connect_s=self._spec.connect_s,
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            value = await response.json(_MAX_RESPONSE_BYTES)
        return response_object(self._account.platform, value)


def _voice(account: Account, spec: SpeechSpec) -> dict[str, str]:
    """Return the voice fields. If the name of the voice contains a language, that takes precedence."""
    voice_locale = _LOCALE.match(spec.voice)
    return {
        "languageCode": voice_locale[1] if voice_locale else _language(account, spec.language_code) or "en-US",
        **({"name": spec.voice} if spec.voice else {}),
        **({"modelName": spec.model} if spec.model else {}),
    }


def _language(account: Account, code: str | None) -> str | None:
    """Return the vendor's code for a language, which has no script."""
    found = code_if_any(account.platform, code, GOOGLE_SYNTHESIS, passes_on=True) if code else None
    return str(parse_tag(found)._replace(script="")) if found and found not in GOOGLE_SYNTHESIS.codes else found


def _audio_config(spec: SpeechSpec, options: Options) -> dict[str, Any]:
    """Return the audio fields without default values, because some voices reject these fields altogether."""
    config: dict[str, Any] = {
        "audioEncoding": "MP3" if spec.audio_format == "mp3" else "LINEAR16",
        "sampleRateHertz": options.sample_rate,
    }
    if spec.speed != 1:
        config["speakingRate"] = min(spec.speed, _MAX_SPEED)
    if options.pitch is not None:
        config["pitch"] = options.pitch
    if options.volume_gain_db is not None:
        config["volumeGainDb"] = options.volume_gain_db
    if options.effects:
        config["effectsProfileId"] = options.effects
    return config


def split_text(text: str, *, marked: bool) -> list[list[str]]:
    """Split `text` into words, one list for each request. Parts end after a sentence where possible."""
    finished: list[list[str]] = []
    part: list[str] = []
    sizes: list[float] = []
    room: float = _PART_BYTES
    for word in _WORD.findall(" ".join(text.split())):
        size = _size(word, marked=marked)
        while part and size > room:
            ends = (end for end in range(len(part), 0, -1) if _SENTENCE_END.search(part[end - 1]))
            end = next(ends, len(part))
            finished.append(part[:end])
            part, sizes = part[end:], sizes[end:]
            room = _PART_BYTES - sum(sizes)
        part.append(word)
        sizes.append(size)
        room -= size
    return [*finished, part] if part else finished


def _size(word: str, *, marked: bool) -> float:
    plain = len(word.encode())
    return max(plain, (len(escape(word).encode()) + _MARK_BYTES) / _MARKUP_FACTOR) if marked else plain


def _ssml(words: Sequence[str]) -> str:
    marked = (f'<mark name="w{number}"/>{escape(word)}' for number, word in enumerate(words))
    return f"<speak>{''.join(marked)}</speak>"


def _audio(vendor: str, response: Mapping[str, Any]) -> bytes:
    content = response.get("audioContent")
    try:
        if isinstance(content, str | None):
            return bytes_of(content)
    except ValueError:
        pass
    raise Garbled(vendor, "sent audio that is not valid base64") from None


def _times_ms(response: Mapping[str, Any]) -> dict[str, int]:
    """Return the times of the marks, by name."""
    times_ms: dict[str, int] = {}
    for point in objects_of(response.get("timepoints")):
        name, seconds = point.get("markName"), number_of(point.get("timeSeconds"))
        if isinstance(name, str) and seconds is not None and 0 <= seconds * 1000 <= MAX_OFFSET_MS:
            times_ms[name] = round(seconds * 1000)
    return times_ms


class JoinedMp3:
    """Joins several MP3 files into one."""

    def __init__(self) -> None:
        self._joiner = Mp3Joiner()

    @property
    def duration_ms(self) -> int:
        return self._joiner.duration_ms

    @property
    def sample_rate(self) -> int | None:
        """The sample rate of the frames, which may differ from the requested one."""
        return self._joiner.sample_rate

    def add(self, audio: bytes) -> bytes:
        return self._joiner.feed(audio) + self._joiner.end()


class JoinedPcm:
    """Joins the samples of several WAV files."""

    def __init__(self, vendor: str, sample_rate: int) -> None:
        self._vendor = vendor
        self.sample_rate = sample_rate
        self._size = 0

    @property
    def duration_ms(self) -> int:
        return round(pcm_seconds(self._size, self.sample_rate) * 1000)

    def add(self, audio: bytes) -> bytes:
        if not audio:
            return b""
        try:
            wav = parse_wav(audio)
        except ValueError:
            wav = None
        if wav is None or (wav.format_tag, wav.channels, wav.sample_rate, wav.bits) != (
            PCM,
            1,
            self.sample_rate,
            16,
        ):
            raise Garbled(self._vendor, "sent audio in another format than requested")
        end = None if wav.data_bytes is None else wav.data_offset + wav.data_bytes
        samples = audio[wav.data_offset : end]
        self._size += len(samples)
        return samples
