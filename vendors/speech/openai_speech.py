"""Speech synthesis with OpenAI's API: a stream of raw audio, or of events that end with the usage."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

from pydantic import Field

from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.account import Account, SpeechSpec
from vendors.calls.meter import is_count
from vendors.errors import Garbled, error_in_stream
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.sse import SseParser
from vendors.http.transport import Incoming, VendorHttp
from vendors.json_events import JsonEvents, bytes_of, is_end_mark, is_error, number_of, object_of, objects_of
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Visemes
from vendors.speech.samples import Samples
from vendors.speech.visemes import MAX_OFFSET_MS, visemes_of

_VOICE = "alloy"
_BASIC_MODELS = "tts-1"
"""The prefix of the names of models that support neither events nor instructions."""
_UNTYPED = "application/octet-stream"
_TYPES = {
    "mp3": {"audio/mpeg", "audio/mp3", _UNTYPED},
    "wav": {"audio/pcm", "audio/l16", "audio/x-pcm", _UNTYPED},
}


class Options(Model):
    """The vendor-specific settings of a strategy."""

    stream_format: Literal["sse", "audio"] | None = None
    """The default is `sse` if the model supports it, because only events report the usage."""
    sample_rate: int = Field(default=24_000, ge=8_000, le=48_000)
    """The sample rate of the vendor's audio. Other hosts with this API use other rates."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Additional request fields."""


class OpenAISpeech:
    """One voice of one model. For WAV it requests raw samples."""

    Options = Options

    def __init__(self, http: VendorHttp, account: Account, spec: SpeechSpec) -> None:
        options = Options.of(spec.options)
        self._http = http
        self._account = account
        self._connect_s = spec.connect_s
        self._types = _TYPES[spec.audio_format]
        self._samples = spec.audio_format == "wav"
        self._format = SpeechFormat("audio/wav" if self._samples else "audio/mpeg", options.sample_rate)
        self._fields = {**_fields(spec, options), **options.extra}
        self._headers = {**account.bearer(), "Content-Type": "application/json"}

    @asynccontextmanager
    async def speak(self, text: str) -> AsyncIterator[AsyncIterator[SpeechItem]]:
        """Synthesize `text`.

        The content type of the response decides how it is read, as some hosts have no events.
        """
        call = Outgoing(
            self._account.platform,
            self._account.url("/audio/speech"),
            headers=self._headers,
            body=dumps({**self._fields, "input": text}),
            connect_s=self._connect_s,
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            if response.content_type == "text/event-stream":
                items = read_events(response)
            elif response.content_type in self._types:
                items = _from_body(response)
            else:
                raise Garbled(
                    response.vendor,
                    f"answered with {response.content_type[:64]}, not audio",
                )
            async with aclosing(self._with_format(items)) as speech:
                yield speech

    async def _with_format(self, items: AsyncGenerator[SpeechItem]) -> AsyncGenerator[SpeechItem]:
        yield self._format
        samples = Samples()
        async with aclosing(items):
            async for item in items:
                if not (self._samples and isinstance(item, AudioBytes)):
                    yield item
                elif audio := samples.feed(item.audio):
                    yield AudioBytes(audio)


def _fields(spec: SpeechSpec, options: Options) -> dict[str, Any]:
    is_basic = spec.model.startswith(_BASIC_MODELS)
    stream_format = options.stream_format or ("audio" if is_basic else "sse")
    fields: dict[str, Any] = {
        "model": spec.model,
        "voice": spec.voice or _VOICE,
        "response_format": "mp3" if spec.audio_format == "mp3" else "pcm",
    }
    if stream_format != "audio":
        fields["stream_format"] = stream_format
    if spec.speed != 1:
        fields["speed"] = spec.speed
    if spec.prompt and not is_basic:
        fields["instructions"] = spec.prompt
    return fields


async def _from_body(response: Incoming) -> AsyncGenerator[SpeechItem]:
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            yield AudioBytes(piece)


async def read_events(response: Incoming) -> AsyncGenerator[SpeechItem]:
    events = SpeechEvents(response.vendor)
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            for item in events.feed(piece):
                yield item
            if events.done:
                break
    if not events.done:
        raise Garbled(response.vendor, "ended its audio without a final event", retryable=True)
    await response.drain()


class SpeechEvents:
    """Parses `speech.audio.delta` events and the final `speech.audio.done`. Does no I/O.

    The local engines also send `speech.audio.phonemes`, before their audio.
    """

    def __init__(self, vendor: str) -> None:
        self.done = False
        self._vendor = vendor
        self._parser = SseParser()
        self._events = JsonEvents()

    def feed(self, piece: bytes) -> Iterator[SpeechItem]:
        """Yield the items of the events that `piece` completes, up to the first error."""
        try:
            payloads = self._parser.payloads(piece)
        except ValueError as error:
            raise Garbled(self._vendor, f"sent an invalid event: {error}") from None
        for payload in payloads:
            if self.done:
                return
            if is_end_mark(payload):
                self.done = True
            elif (item := self._item(payload)) is not None:
                yield item

    def _item(self, payload: bytes) -> SpeechItem | None:
        try:
            event = self._events.decode(payload)
            if (error := event.get("error")) and is_error(error):
                raise error_in_stream(self._vendor, error)
            match event.get("type"):
                case "speech.audio.delta":
                    audio = bytes_of(event.get("audio"))
                    return AudioBytes(audio) if audio else None
                case "speech.audio.phonemes":
                    shapes = visemes_of(_phonemes(event.get("phonemes")))
                    return Visemes(shapes) if shapes else None
                case "speech.audio.done":
                    self.done = True
                    return _usage(object_of(event.get("usage")))
                case _:
                    return None
        except ValueError:
            raise Garbled(self._vendor, "sent a malformed event") from None


def _phonemes(phonemes: Any) -> Iterator[tuple[str, int]]:
    for phoneme in objects_of(phonemes):
        sound, offset_ms = phoneme.get("phoneme"), number_of(phoneme.get("offset_ms"))
        if isinstance(sound, str) and offset_ms is not None and 0 <= offset_ms <= MAX_OFFSET_MS:
            yield sound, int(offset_ms)


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    input_token, output_token = usage.get("input_tokens"), usage.get("output_tokens")
    return Usage(input_token, output_token) if is_count(input_token) and is_count(output_token) else None
