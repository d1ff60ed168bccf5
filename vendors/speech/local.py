"""Speech by the local engines: OpenAI's API, with more formats, and with events for the times of phonemes."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.account import Account, SpeechSpec
from vendors.errors import Garbled
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import Incoming, VendorHttp
from vendors.protocols import ANY_CODEC, AcceptedAudio, SpeechFormat, SpeechItem
from vendors.speech.decoding import DECODABLE_TYPES
from vendors.speech.languages import plain_code
from vendors.speech.openai import OpenAITranscription
from vendors.speech.openai_speech import read_events

_ACCEPTED = AcceptedAudio(dict.fromkeys(("audio/pcm", *DECODABLE_TYPES), ANY_CODEC))


class LocalTranscription(OpenAITranscription):
    """Recognition by whisper. The process of the engines decodes all types itself."""

    accepted = _ACCEPTED


class SpeechOptions(Model):
    """The local engines have no options."""


class LocalSpeech:
    """One voice of one engine. By default it is the engine's voice for the language."""

    Options = SpeechOptions

    def __init__(self, http: VendorHttp, account: Account, spec: SpeechSpec) -> None:
        SpeechOptions.of(spec.options)
        self._http = http
        self._account = account
        self._spec = spec
        voice = spec.voice or (plain_code(spec.language_code) if spec.language_code else None)
        self._fields = {
            "model": spec.model,
            "speed": spec.speed,
            "response_format": "mp3" if spec.audio_format == "mp3" else "pcm",
            "stream_format": "sse",
            **({"voice": voice} if voice else {}),
        }

    @asynccontextmanager
    async def speak(self, text: str) -> AsyncIterator[AsyncIterator[SpeechItem]]:
        call = Outgoing(
            self._account.platform,
            self._account.url("/audio/speech"),
            headers={**self._account.bearer(), "Content-Type": "application/json"},
            body=dumps({**self._fields, "input": text}),
            connect_s=self._spec.connect_s,
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            if response.content_type != "text/event-stream":
                raise Garbled(response.vendor, f"answered with {response.content_type[:64]}, not an event stream")
            async with aclosing(self._items(response)) as items:
                yield items

    async def _items(self, response: Incoming) -> AsyncGenerator[SpeechItem]:
        mime_type = "audio/mpeg" if self._spec.audio_format == "mp3" else "audio/wav"
        rate = response.headers.get("X-Sample-Rate", "")
        yield SpeechFormat(mime_type, int(rate) if rate.isdecimal() else 22_050)  # type: ignore[arg-type]
        async with aclosing(read_events(response)) as items:
            async for item in items:
                yield item
