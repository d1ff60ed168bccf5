"""Speech recognition by vendor A: PCM and WAV streamed over a WebSocket, short Ogg Opus in one HTTP request."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

from pydantic import Field

from streams.audio.codec import OPUS, PCM_16
from streams.audio.ogg import ogg_s
from streams.audio.signatures import OGG, WAV
from streams.wire.model import Model
from vendors.account import Account, RecognitionSpec
from vendors.errors import Garbled, Refused
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp
from vendors.json_events import object_of
from vendors.protocols import ANY_CODEC, AcceptedAudio, AudioFormat, AudioInput, Transcript
from vendors.speech.azure.languages import RECOGNITION, word_gap
from vendors.speech.azure.recognition import (
    Hypothesis,
    Phrase,
    RecognitionRequest,
    is_unread,
    open_recognition,
    phrase_text,
)
from vendors.speech.azure.sockets import http_url, key_header, socket_url
from vendors.speech.languages import vendor_code

_STREAMED_TYPES = frozenset({"audio/pcm", WAV})
_MAX_OGG_S = 60
_ACCEPTED = AcceptedAudio(
    {"audio/pcm": ANY_CODEC, WAV: frozenset({PCM_16}), OGG: frozenset({OPUS})}, max_file_s=_MAX_OGG_S
)


class RecognitionOptions(Model):
    profanity: Literal["masked", "removed", "raw"] = "raw"
    """How profanity is transcribed."""
    phrases: list[str] = Field(default_factory=list, max_length=500)
    """Names and terms that are likely to occur."""


class AzureRecognition:
    """Recognition with one account. `model` is the id of a custom model, or empty."""

    Options = RecognitionOptions
    accepted = _ACCEPTED

    def __init__(self, http: VendorHttp, account: Account, spec: RecognitionSpec) -> None:
        self._options = RecognitionOptions.of(spec.options)
        self._http = http
        self._account = account
        self._connect_s = spec.connect_s
        self._language = vendor_code(account.platform, spec.language_code, RECOGNITION, passes_on=True)
        self._query = {
            "language": self._language,
            "format": "simple",
            "profanity": self._options.profanity,
            **({"cid": spec.model} if spec.model else {}),
        }

    def streams(self, audio_format: AudioFormat) -> bool:
        return audio_format.mime_type in _STREAMED_TYPES

    @asynccontextmanager
    async def transcribe(
        self, audio: AudioInput, audio_format: AudioFormat
    ) -> AsyncIterator[AsyncIterator[Transcript]]:
        if audio_format.mime_type == "audio/ogg":
            yield _single(await self._short(audio))
            return
        vendor = self._account.platform
        if audio_format.mime_type not in _STREAMED_TYPES:
            raise Refused(vendor, f"does not accept {audio_format}")
        request = RecognitionRequest(audio, audio_format, self._context())
        url = socket_url(self._account, "/stt/speech/universal/v2", self._query)
        async with (
            open_recognition(self._http, self._account, url, request, connect_s=self._connect_s) as results,
            aclosing(_transcripts(vendor, results, word_gap(self._language))) as transcripts,
        ):
            yield transcripts

    def _context(self) -> dict[str, Any]:
        hints = [{"Text": phrase} for phrase in self._options.phrases]
        return {
            "phraseDetection": {"mode": "Conversation", "language": self._language},
            **({"dgi": {"Groups": [{"Type": "Generic", "Items": hints}]}} if hints else {}),
        }

    async def _short(self, audio: AudioInput) -> Transcript:
        data = b"".join([piece async for piece in audio.read()])
        vendor = self._account.platform
        if b"OpusHead" not in data[:128]:
            raise Refused(vendor, "only accepts Ogg files with Opus")
        if ogg_s(data) > _MAX_OGG_S:
            raise Refused(vendor, f"does not accept Ogg files of more than {_MAX_OGG_S} s")
        call = Outgoing(
            vendor,
            http_url(self._account, "/stt/speech/recognition/conversation/cognitiveservices/v1", self._query),
            headers={
                **key_header(self._account),
                "Content-Type": "audio/ogg; codecs=opus",
                "Accept": "application/json",
            },
            body=data,
            connect_s=self._connect_s,
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            return parse_short(vendor, await response.json())


def parse_short(vendor: str, response: Any) -> Transcript:
    """Return the transcript of a short file."""
    phrase = object_of(response)
    if not phrase.keys() & {"RecognitionStatus", "DisplayText", "NBest"}:
        raise Garbled(vendor, "sent a response without a status")
    text = phrase_text(vendor, phrase).strip()
    if not text and is_unread(phrase):
        raise Garbled(vendor, "sent a malformed phrase")
    return Transcript(text, final=True)


async def _transcripts(
    vendor: str, results: AsyncIterator[Hypothesis | Phrase], gap: str
) -> AsyncGenerator[Transcript]:
    """Yield the text so far each time it grows, and the complete text at the end."""
    phrases: list[str] = []
    has_unread = False
    async for item in results:
        match item:
            case Hypothesis(text):
                yield Transcript(gap.join([*phrases, text.strip()]), final=False)
            case Phrase(value):
                if text := phrase_text(vendor, value).strip():
                    phrases.append(text)
                    yield Transcript(gap.join(phrases), final=False)
                else:
                    has_unread = has_unread or is_unread(value)
    if has_unread and not phrases:  # Another vendor may understand what would look like silence.
        raise Garbled(vendor, "sent malformed phrases")
    yield Transcript(gap.join(phrases), final=True)


async def _single(transcript: Transcript) -> AsyncGenerator[Transcript]:
    yield transcript
