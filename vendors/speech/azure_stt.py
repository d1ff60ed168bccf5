"""Recognition of vendor A: PCM and WAV over a socket while they arrive, short Ogg Opus over HTTP in one piece."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

from pydantic import Field

from streams.durations import ogg_s
from streams.wire.model import Model
from vendors.account import Account, RecognitionSpec
from vendors.errors import Garbled, Refused
from vendors.protocols import AudioFormat, AudioInput, Transcript
from vendors.speech.azure_languages import locale_of, word_gap
from vendors.speech.azure_line import http_url, key_header, socket_url
from vendors.speech.azure_listening import Hypothesis, Phrase, Question, listening, said
from vendors.transport import Outgoing, VendorHttp

_STREAMED = frozenset({"audio/pcm", "audio/wav"})
_MAX_OGG_S = 60


class RecognitionOptions(Model):
    profanity: Literal["masked", "removed", "raw"] = "raw"
    phrases: list[str] = Field(default_factory=list, max_length=500)
    """Names and terms that are likely to be said."""


class AzureRecognition:
    """One account; `model` is the id of a custom model, where one is meant."""

    Options = RecognitionOptions

    def __init__(self, http: VendorHttp, account: Account, spec: RecognitionSpec) -> None:
        self._options = RecognitionOptions.of(spec.options)
        self._http = http
        self._account = account
        self._connect_s = spec.connect_s
        self._language = locale_of(spec.language_code)
        self._query = {
            "language": self._language,
            "format": "simple",
            "profanity": self._options.profanity,
            **({"cid": spec.model} if spec.model else {}),
        }

    def streams(self, audio_format: AudioFormat) -> bool:
        return audio_format.mime_type in _STREAMED

    @asynccontextmanager
    async def transcribe(
        self, audio: AudioInput, audio_format: AudioFormat
    ) -> AsyncIterator[AsyncIterator[Transcript]]:
        if audio_format.mime_type == "audio/ogg":
            yield _once(await self._short(audio))
            return
        vendor = self._account.platform
        if audio_format.mime_type not in _STREAMED:
            raise Refused(vendor, f"takes no {audio_format.mime_type}")
        question = Question(audio, audio_format, self._context())
        url = socket_url(self._account, "/stt/speech/universal/v2", self._query)
        async with (
            listening(self._http, self._account, url, question, connect_s=self._connect_s) as heard,
            aclosing(_transcripts(vendor, heard, word_gap(self._language))) as transcripts,
        ):
            yield transcripts

    def _context(self) -> dict[str, Any]:
        hints = [{"Text": phrase} for phrase in self._options.phrases]
        return {
            "phraseDetection": {"mode": "Conversation", "language": self._language},
            **({"dgi": {"Groups": [{"Type": "Generic", "Items": hints}]}} if hints else {}),
        }

    async def _short(self, audio: AudioInput) -> Transcript:
        heard = b"".join([piece async for piece in audio.read()])
        vendor = self._account.platform
        if b"OpusHead" not in heard[:128]:
            raise Refused(vendor, "takes no Ogg but of Opus")
        if ogg_s(heard) > _MAX_OGG_S:
            raise Refused(vendor, f"takes no Ogg of more than {_MAX_OGG_S} s")
        call = Outgoing(
            vendor,
            http_url(self._account, "/stt/speech/recognition/conversation/cognitiveservices/v1", self._query),
            headers={
                **key_header(self._account),
                "Content-Type": "audio/ogg; codecs=opus",
                "Accept": "application/json",
            },
            body=heard,
            connect_s=self._connect_s,
        )
        async with self._http.stream(call) as answer:
            phrase = await answer.json()
            if not isinstance(phrase, dict) or "RecognitionStatus" not in phrase:
                raise Garbled(vendor, "answered without a status")
            return Transcript(said(vendor, phrase).strip(), final=True)


async def _transcripts(
    vendor: str, heard: AsyncIterator[Hypothesis | Phrase], gap: str
) -> AsyncGenerator[Transcript]:
    """All that was said so far, each time that there is more of it; last, all that was said."""
    phrases: list[str] = []
    async for item in heard:
        match item:
            case Hypothesis(text):
                yield Transcript(gap.join([*phrases, text.strip()]), final=False)
            case Phrase(value):
                if text := said(vendor, value).strip():
                    phrases.append(text)
                    yield Transcript(gap.join(phrases), final=False)
    yield Transcript(gap.join(phrases), final=True)


async def _once(transcript: Transcript) -> AsyncGenerator[Transcript]:
    yield transcript
