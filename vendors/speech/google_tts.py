"""Speech of Google Cloud: one JSON a request, so a long text goes in parts; times by marks in SSML."""

import re
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any
from xml.sax.saxutils import escape

from pydantic import Field

from streams.audio import PCM, parse_wav, pcm_seconds
from streams.mp3 import Mp3Joiner
from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.account import Account, SpeechSpec
from vendors.errors import Garbled
from vendors.google import GoogleHttp, answered
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Visemes
from vendors.speech.visemes import spread
from vendors.transport import Outgoing, VendorHttp

_SERVICE = "texttospeech"
_PART_BYTES = 900
"""Of text in one request: sentences that are much longer are refused, and audio comes sooner."""
_MARKUP = 5
"""So many times as long may the SSML be: the vendor takes 5,000 bytes."""
_MARK_BYTES = len('<mark name="w000"/>')
_PIECE_BYTES = 32 * 1024
_MOST_SPEED = 2.0
_ANSWER_BYTES = 32 * 1024 * 1024
_WORD = re.compile(r"[^\s。！？，、；：]{1,60}[。！？，、；：]{0,60} ?|[。！？，、；：]{1,60} ?")  # noqa: RUF001 - of scripts without spaces
_SENTENCE_END = re.compile(r"[.!?…。！？]['\"”’)\]]* ?$")  # noqa: RUF001
_LOCALE = re.compile(r"([a-z]{2,3}(?:-[A-Z][a-z]{3})?-(?:[A-Z]{2}|\d{3}))-")
_WITHOUT_MARKS = re.compile(r"Chirp|Journey|Studio")
"""Voices that take no marks; those of a model of its own, such as Gemini's, neither."""


class Options(Model):
    """How the voice sounds."""

    sample_rate: int = Field(default=24_000, ge=8_000, le=48_000)
    pitch: float | None = Field(default=None, ge=-20, le=20)
    volume_gain_db: float | None = Field(default=None, ge=-96, le=16)
    effects: list[str] = Field(default_factory=list, max_length=100)
    """Device profiles, such as `handset-class-device`."""


class GoogleSpeech:
    """One voice of one account. `model` is only for voices that belong to one, such as `gemini-2.5-flash-tts`."""

    Options = Options

    def __init__(self, http: VendorHttp, account: Account, spec: SpeechSpec) -> None:
        options = Options.of(spec.options)
        self._http = GoogleHttp(http, account)
        self._account = account
        self._spec = spec
        self._mp3 = spec.audio_format == "mp3"
        self._rate = options.sample_rate
        self._voice = _voice(spec)
        self._config = _audio_config(spec, options)
        self._marked = spec.need_viseme and not spec.model and not _WITHOUT_MARKS.search(spec.voice)

    @asynccontextmanager
    async def speak(self, text: str) -> AsyncIterator[AsyncIterator[SpeechItem]]:
        said = parts(text, marked=self._marked)
        first = await self._asked(said[0]) if said else {}
        async with aclosing(self._items(said, first)) as items:
            yield items

    async def _items(self, said: Sequence[Sequence[str]], answer: Mapping[str, Any]) -> AsyncGenerator[SpeechItem]:
        """Part after part: the answers are files, what comes out of here is one."""
        whole = Mp3Whole() if self._mp3 else PcmWhole(self._account.platform, self._rate)
        for number, words in enumerate(said):
            if number:
                answer = await self._asked(words)
            begin_ms = whole.duration_ms
            audio = whole.add(_audio(self._account.platform, answer))
            if not number:
                yield SpeechFormat("audio/mpeg" if self._mp3 else "audio/wav", whole.sample_rate or self._rate)
            end_ms = whole.duration_ms
            if spans := self._spans(words, answer, begin_ms=begin_ms, end_ms=end_ms):
                shut = [(".", end_ms, end_ms)] if words is said[-1] else []
                yield Visemes(spread([*spans, *shut]))
            for at in range(0, len(audio), _PIECE_BYTES):
                yield AudioBytes(audio[at : at + _PIECE_BYTES])

    def _spans(
        self, words: Sequence[str], answer: Mapping[str, Any], *, begin_ms: int, end_ms: int
    ) -> list[tuple[str, int, int]]:
        """Words with their times in all the audio; one whose mark is not told belongs to the word before it."""
        first_ms = begin_ms
        try:
            told = {
                point["markName"]: round(point["timeSeconds"] * 1000) for point in answer.get("timepoints") or ()
            }
        except (TypeError, KeyError):
            raise Garbled(self._account.platform, "told times of an unknown form") from None
        begun: list[tuple[str, int]] = []
        for number, word in enumerate(words):
            at_ms = told.get(f"w{number}")
            if at_ms is not None:
                begin_ms = min(max(begin_ms, first_ms + at_ms), end_ms)
                begun.append((word, begin_ms))
            elif begun:
                begun[-1] = (begun[-1][0] + word, begun[-1][1])
        ends = [*(at_ms for _, at_ms in begun[1:]), end_ms]
        return [(text, at_ms, until_ms) for (text, at_ms), until_ms in zip(begun, ends, strict=False)]

    async def _asked(self, words: Sequence[str]) -> dict[str, Any]:
        asked: dict[str, Any] = {"voice": self._voice, "audioConfig": self._config}
        if self._marked:
            asked |= {"input": {"ssml": _ssml(words)}, "enableTimePointing": ["SSML_MARK"]}
        else:
            prompt = {"prompt": self._spec.prompt} if self._spec.prompt and self._spec.model else {}
            asked["input"] = {"text": "".join(words), **prompt}
        version = "v1beta1" if self._marked else "v1"
        call = Outgoing(
            self._account.platform,
            self._account.url(f"/{version}/text:synthesize").replace("{service}", _SERVICE),
            headers={"Content-Type": "application/json"},
            body=dumps(asked),
            connect_s=self._spec.connect_s,
        )
        async with self._http.stream(call) as answer:
            value = await answer.json(_ANSWER_BYTES)
        return answered(self._account.platform, value)


def _voice(spec: SpeechSpec) -> dict[str, str]:
    """A voice that is named after its language takes no other: the name goes before the wish."""
    named = _LOCALE.match(spec.voice)
    return {
        "languageCode": named[1] if named else spec.language_code or "en-US",
        **({"name": spec.voice} if spec.voice else {}),
        **({"modelName": spec.model} if spec.model else {}),
    }


def _audio_config(spec: SpeechSpec, options: Options) -> dict[str, Any]:
    """What is as usual is left out: some voices refuse the very fields."""
    config: dict[str, Any] = {
        "audioEncoding": "MP3" if spec.audio_format == "mp3" else "LINEAR16",
        "sampleRateHertz": options.sample_rate,
    }
    if spec.speed != 1:
        config["speakingRate"] = min(spec.speed, _MOST_SPEED)
    if options.pitch is not None:
        config["pitch"] = options.pitch
    if options.volume_gain_db is not None:
        config["volumeGainDb"] = options.volume_gain_db
    if options.effects:
        config["effectsProfileId"] = options.effects
    return config


def parts(text: str, *, marked: bool) -> list[list[str]]:
    """The words of `text`, a list for each request; cut behind a sentence where one ends."""
    done: list[list[str]] = []
    part: list[str] = []
    sizes: list[float] = []
    room: float = _PART_BYTES
    for word in _WORD.findall(" ".join(text.split())):
        size = _bytes(word, marked=marked)
        while part and size > room:
            ends = (end for end in range(len(part), 0, -1) if _SENTENCE_END.search(part[end - 1]))
            end = next(ends, len(part))
            done.append(part[:end])
            part, sizes = part[end:], sizes[end:]
            room = _PART_BYTES - sum(sizes)
        part.append(word)
        sizes.append(size)
        room -= size
    return [*done, part] if part else done


def _bytes(word: str, *, marked: bool) -> float:
    plain = len(word.encode())
    return max(plain, (len(escape(word).encode()) + _MARK_BYTES) / _MARKUP) if marked else plain


def _ssml(words: Sequence[str]) -> str:
    marked = (f'<mark name="w{number}"/>{escape(word)}' for number, word in enumerate(words))
    return f"<speak>{''.join(marked)}</speak>"


def _audio(vendor: str, answer: Mapping[str, Any]) -> bytes:
    try:
        return b64decode(answer.get("audioContent") or "", validate=True)
    except (ValueError, TypeError):
        raise Garbled(vendor, "answered with audio that is no base64") from None


class Mp3Whole:
    """One MP3 of several."""

    def __init__(self) -> None:
        self._joiner = Mp3Joiner()

    @property
    def duration_ms(self) -> int:
        return self._joiner.duration_ms

    @property
    def sample_rate(self) -> int | None:
        """As the frames say: it need not be what was asked for."""
        return self._joiner.sample_rate

    def add(self, audio: bytes) -> bytes:
        return self._joiner.feed(audio) + self._joiner.end()


class PcmWhole:
    """The samples of several WAVs."""

    def __init__(self, vendor: str, sample_rate: int) -> None:
        self._vendor = vendor
        self.sample_rate = sample_rate
        self._bytes = 0

    @property
    def duration_ms(self) -> int:
        return round(pcm_seconds(self._bytes, self.sample_rate) * 1000)

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
            raise Garbled(self._vendor, "answered with audio of another form")
        end = None if wav.data_bytes is None else wav.data_offset + wav.data_bytes
        samples = audio[wav.data_offset : end]
        self._bytes += len(samples)
        return samples
