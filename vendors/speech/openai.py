"""Transcription of OpenAI's protocol: a whole file up, its text down, at once or as it is written."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from io import BytesIO
from typing import Any, Literal

import aiohttp

from streams.audio import wav_header
from streams.wire.codec import loads
from streams.wire.model import Model
from vendors.account import Account, RecognitionSpec
from vendors.errors import Garbled, broke_off
from vendors.protocols import AudioFormat, AudioInput, Transcript
from vendors.sse import SseParser
from vendors.transport import Incoming, Outgoing, VendorHttp

_EXTENSIONS = {
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/webm": "webm",
}
_STREAMING = ("gpt-4o", "gpt-transcribe")
"""What the names of models begin with that write while they hear."""
_SURELY_NO_SPEECH = 0.6
_UNSURE_WORDS = -1.0
"""Whisper's own bounds: a segment beyond both is what it makes of silence."""


class TranscriptionOptions(Model):
    response_format: Literal["json", "verbose_json"] = "json"
    """`verbose_json` (whisper alone) tells what was made up of silence; that is left out."""
    stream: bool | None = None
    """Absent: where the model can."""


class OpenAITranscription:
    """One model of one account. Nothing comes back before the whole file is there."""

    Options = TranscriptionOptions

    def __init__(self, http: VendorHttp, account: Account, spec: RecognitionSpec) -> None:
        options = TranscriptionOptions.of(spec.options)
        self._http = http
        self._account = account
        self._connect_s = spec.connect_s
        streams = spec.model.startswith(_STREAMING) if options.stream is None else options.stream
        self._fields = {
            "model": spec.model,
            "response_format": options.response_format,
            **_hints(spec),
            **({"stream": "true"} if streams else {}),
        }

    def streams(self, audio_format: AudioFormat) -> bool:
        return False

    @asynccontextmanager
    async def transcribe(
        self, audio: AudioInput, audio_format: AudioFormat
    ) -> AsyncIterator[AsyncIterator[Transcript]]:
        """What comes is told by its type: a model that does not stream answers at once."""
        async with aclosing(audio.read()) as pieces:
            heard = b"".join([piece async for piece in pieces])
        if audio_format.mime_type == "audio/pcm":
            heard = wav_header(audio_format.sample_rate, data_bytes=len(heard)) + heard
            mime_type = "audio/wav"
        else:
            mime_type = audio_format.mime_type
        body, content_type = await self._form(heard, mime_type)
        call = Outgoing(
            self._account.platform,
            self._account.url("/audio/transcriptions"),
            headers={**self._account.bearer(), "Content-Type": content_type},
            body=body,
            connect_s=self._connect_s,
        )
        async with self._http.stream(call) as answer:
            items = _written(answer) if answer.content_type == "text/event-stream" else _whole(answer)
            async with aclosing(items) as transcripts:
                yield transcripts

    async def _form(self, heard: bytes, mime_type: str) -> tuple[bytes, str]:
        """The whole form, which can be sent again, and its type."""
        form = aiohttp.FormData()
        for name, value in self._fields.items():
            form.add_field(name, value)
        filename = f"audio.{_EXTENSIONS.get(mime_type, 'bin')}"
        form.add_field("file", BytesIO(heard), filename=filename, content_type=mime_type)
        writer = form()
        return await writer.as_bytes(), writer.content_type


def _hints(spec: RecognitionSpec) -> dict[str, str]:
    """Language and prompt under the names that the model has for them."""
    language = spec.language_code.partition("-")[0].lower()
    if "diarize" in spec.model:
        return {"language": language, "chunking_strategy": "auto"}
    named = "languages[]" if spec.model.startswith("gpt-transcribe") else "language"
    return {named: language, **({"prompt": spec.prompt} if spec.prompt else {})}


async def _whole(answer: Incoming) -> AsyncGenerator[Transcript]:
    value = await answer.json()
    if isinstance(value, dict) and (error := value.get("error")):
        raise broke_off(answer.vendor, error)
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise Garbled(answer.vendor, "answered without a text")
    if isinstance(segments := value.get("segments"), list) and segments:
        text = "".join(_spoken(answer.vendor, segment) for segment in segments)
    yield Transcript(text.strip(), final=True, seconds=_seconds(value))


def _spoken(vendor: str, segment: Any) -> str:
    """The text of a segment; none where it is made up of silence."""
    try:
        made_up = segment["no_speech_prob"] > _SURELY_NO_SPEECH and segment["avg_logprob"] < _UNSURE_WORDS
        return "" if made_up else str(segment["text"])
    except (KeyError, TypeError):
        raise Garbled(vendor, "answered with a segment of an unknown form") from None


def _seconds(value: dict[str, Any]) -> float | None:
    usage = value.get("usage")
    told = usage.get("seconds") if isinstance(usage, dict) else None
    seconds = value.get("duration") if told is None else told
    return float(seconds) if isinstance(seconds, int | float) else None


async def _written(answer: Incoming) -> AsyncGenerator[Transcript]:
    """What is written so far, again and again, and then the whole."""
    events = TranscriptEvents(answer.vendor)
    async with aclosing(answer.pieces()) as pieces:
        async for piece in pieces:
            if (transcript := events.feed(piece)) is not None:
                yield transcript
            if events.done:
                break
    if not events.done:
        raise Garbled(answer.vendor, "ended its transcript without its end mark", retryable=True)
    await answer.rest()


class TranscriptEvents:
    """`transcript.text.delta` events, and the `transcript.text.done` that ends them. Pure."""

    def __init__(self, vendor: str) -> None:
        self.done = False
        self._vendor = vendor
        self._parser = SseParser()
        self._text = ""

    def feed(self, piece: bytes) -> Transcript | None:
        """The text so far where `piece` adds to it, at its end the whole text."""
        before = self._text
        try:
            for event in self._parser.feed(piece):
                if self.done:
                    break
                self._take(event.data)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Garbled(self._vendor, "sent an event of an unknown form") from None
        if self.done or self._text != before:
            return Transcript(self._text.strip(), final=self.done)
        return None

    def _take(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.done = True
            return
        event: dict[str, Any] = loads(data)
        if error := event.get("error"):
            raise broke_off(self._vendor, error)
        if event.get("type") == "transcript.text.delta":
            self._text += event["delta"]
        elif event.get("type") == "transcript.text.done":
            text = event["text"]
            if not isinstance(text, str):
                raise TypeError
            self._text, self.done = text, True
