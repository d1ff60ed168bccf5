"""Speech of OpenAI's protocol: bare audio as it is made, or events with audio that end with their usage."""

from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

from pydantic import Field

from streams.wire.codec import dumps, loads
from streams.wire.model import Model
from vendors.account import Account, SpeechSpec
from vendors.errors import Garbled, broke_off
from vendors.meter import is_count
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage
from vendors.speech.samples import Samples
from vendors.sse import SseParser
from vendors.transport import Incoming, Outgoing, VendorHttp

_VOICE = "alloy"
_CHARACTERS_ALONE = "tts-1"
"""What the names of models begin with that know no events and take no instructions."""
_UNTYPED = "application/octet-stream"
_TYPES = {
    "mp3": {"audio/mpeg", "audio/mp3", _UNTYPED},
    "wav": {"audio/pcm", "audio/l16", "audio/x-pcm", _UNTYPED},
}


class Options(Model):
    """What of a strategy goes to the vendor as it stands."""

    stream_format: Literal["sse", "audio"] | None = None
    """Absent: `sse` where the model knows it, for only events tell what was used."""
    sample_rate: int = Field(default=24_000, ge=8_000, le=48_000)
    """Of what the vendor sends: others that speak this protocol have other rates."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request."""


class OpenAISpeech:
    """One voice of one model. WAV is asked for as bare samples."""

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
        """What comes is told by its type: some that speak this protocol know no events."""
        call = Outgoing(
            self._account.platform,
            self._account.url("/audio/speech"),
            headers=self._headers,
            body=dumps({**self._fields, "input": text}),
            connect_s=self._connect_s,
        )
        async with self._http.stream(call) as answer:
            if answer.content_type == "text/event-stream":
                items = _from_events(answer)
            elif answer.content_type in self._types:
                items = _from_body(answer)
            else:
                raise Garbled(answer.vendor, f"answered with {answer.content_type[:64]}, not as it was asked")
            async with aclosing(self._speech(items)) as speech:
                yield speech

    async def _speech(self, items: AsyncGenerator[SpeechItem]) -> AsyncGenerator[SpeechItem]:
        yield self._format
        samples = Samples()
        async with aclosing(items):
            async for item in items:
                if not (self._samples and isinstance(item, AudioBytes)):
                    yield item
                elif audio := samples.whole(item.audio):
                    yield AudioBytes(audio)


def _fields(spec: SpeechSpec, options: Options) -> dict[str, Any]:
    plain = spec.model.startswith(_CHARACTERS_ALONE)
    stream_format = options.stream_format or ("audio" if plain else "sse")
    fields: dict[str, Any] = {
        "model": spec.model,
        "voice": spec.voice or _VOICE,
        "response_format": "mp3" if spec.audio_format == "mp3" else "pcm",
    }
    if stream_format != "audio":
        fields["stream_format"] = stream_format
    if spec.speed != 1:
        fields["speed"] = spec.speed
    if spec.prompt and not plain:
        fields["instructions"] = spec.prompt
    return fields


async def _from_body(answer: Incoming) -> AsyncGenerator[SpeechItem]:
    async with aclosing(answer.pieces()) as pieces:
        async for piece in pieces:
            yield AudioBytes(piece)


async def _from_events(answer: Incoming) -> AsyncGenerator[SpeechItem]:
    events = SpeechEvents(answer.vendor)
    async with aclosing(answer.pieces()) as pieces:
        async for piece in pieces:
            for item in events.feed(piece):
                yield item
            if events.done:
                break
    if not events.done:
        raise Garbled(answer.vendor, "ended its audio without its end mark", retryable=True)
    await answer.rest()


class SpeechEvents:
    """`speech.audio.delta` events, and the `speech.audio.done` that ends them. Pure."""

    def __init__(self, vendor: str) -> None:
        self.done = False
        self._vendor = vendor
        self._parser = SseParser()

    def feed(self, piece: bytes) -> Iterator[SpeechItem]:
        """What the events hold that `piece` completes, up to a fault."""
        try:
            events = self._parser.feed(piece)
        except ValueError as error:
            raise Garbled(self._vendor, f"sent nonsense: {error}") from None
        for event in events:
            if self.done:
                return
            if event.data == b"[DONE]":
                self.done = True
            elif (item := self._item(event.data)) is not None:
                yield item

    def _item(self, data: bytes) -> SpeechItem | None:
        try:
            event: dict[str, Any] = loads(data)
            if error := event.get("error"):
                raise broke_off(self._vendor, error)
            match event.get("type"):
                case "speech.audio.delta":
                    return AudioBytes(b64decode(event["audio"], validate=True))
                case "speech.audio.done":
                    self.done = True
                    return _usage(event.get("usage"))
                case _:
                    return None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Garbled(self._vendor, "sent an event of an unknown form") from None


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    taken, spoken = usage.get("input_tokens"), usage.get("output_tokens")
    return Usage(taken, spoken) if is_count(taken) and is_count(spoken) else None
