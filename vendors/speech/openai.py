"""Transcription with OpenAI's API: it uploads a complete file, and receives the text whole or in parts."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from io import BytesIO
from typing import Any, Literal

import aiohttp

from streams.audio.audio import wav_header
from streams.audio.signatures import MP4
from streams.loop_time import wait_for_loop_time
from streams.wire.model import Model
from vendors.account import Account, RecognitionSpec
from vendors.errors import Garbled, error_in_stream
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.sse import SseParser
from vendors.http.transport import Incoming, VendorHttp
from vendors.json_events import JsonEvents, is_end_mark, is_error, number_of, object_of, objects_of, text_of
from vendors.protocols import ANY_CODEC, AcceptedAudio, AudioFormat, AudioInput, Transcript
from vendors.speech.languages import WHISPER, WHISPER_1, code_if_any

_EXTENSIONS = {
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/webm": "webm",
}
_STREAMING_MODELS = ("gpt-4o", "gpt-transcribe")
"""Prefixes of the names of models that can stream the text."""
_MAX_NO_SPEECH_PROBABILITY = 0.6
_MIN_LOG_PROBABILITY = -1.0
"""Whisper's own limits. Text is hallucinated if its segment is above the first limit and below the second one."""


_CONTAINERS = dict.fromkeys(("audio/pcm", *_EXTENSIONS), ANY_CODEC)
ACCEPTED = AcceptedAudio({**_CONTAINERS, MP4: frozenset()})
"""The API's formats. Of fragmented MP4, which Safari records, it refuses some and hears only a part of others."""


class TranscriptionOptions(Model):
    response_format: Literal["json", "verbose_json"] = "json"
    """`verbose_json` (whisper only) marks text that was hallucinated during silence, which is then removed."""
    stream: bool | None = None
    """Whether to stream the text. By default, it is streamed if the model supports it."""


class OpenAITranscription:
    """One model of one account. The text arrives only after the complete file has been uploaded."""

    Options = TranscriptionOptions
    accepted = ACCEPTED

    def __init__(self, http: VendorHttp, account: Account, spec: RecognitionSpec) -> None:
        options = TranscriptionOptions.of(spec.options)
        self._http = http
        self._account = account
        self._connect_s = spec.connect_s
        streams = spec.model.startswith(_STREAMING_MODELS) if options.stream is None else options.stream
        self._fields = {
            "model": spec.model,
            "response_format": options.response_format,
            **_hints(account, spec),
            **({"stream": "true"} if streams else {}),
        }

    def streams(self, audio_format: AudioFormat) -> bool:
        return False

    @asynccontextmanager
    async def transcribe(
        self, audio: AudioInput, audio_format: AudioFormat
    ) -> AsyncIterator[AsyncIterator[Transcript]]:
        """Transcribe the audio. The content type of the response shows whether the model streams."""
        async with aclosing(audio.read()) as pieces:
            data = [piece async for piece in pieces]
        if audio_format.mime_type == "audio/pcm":
            data.insert(0, wav_header(audio_format.sample_rate, data_bytes=sum(map(len, data))))
            mime_type = "audio/wav"
        else:
            mime_type = audio_format.mime_type
        body, content_type = await self._form(data, mime_type)
        call = Outgoing(
            self._account.platform,
            self._account.url("/audio/transcriptions"),
            headers={**self._account.bearer(), "Content-Type": content_type},
            body=body,
            connect_s=self._connect_s,
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            items = (
                _read_stream(response) if response.content_type == "text/event-stream" else _read_whole(response)
            )
            async with aclosing(items) as transcripts:
                yield transcripts

    async def _form(self, file: list[bytes], mime_type: str) -> tuple[bytes, str]:
        """Return the encoded multipart form and its content type.

        The file replaces a mark in the form, so that it is copied only once. aiohttp would copy it several times.
        """
        mark = secrets.token_hex(16).encode()
        form = aiohttp.FormData()
        for name, value in self._fields.items():
            form.add_field(name, value)
        filename = f"audio.{_EXTENSIONS.get(mime_type, 'bin')}"
        form.add_field("file", BytesIO(mark), filename=filename, content_type=mime_type)
        writer = form()
        before, _, after = (await writer.as_bytes()).partition(mark)
        await wait_for_loop_time()
        return b"".join([before, *file, after]), writer.content_type


def _hints(account: Account, spec: RecognitionSpec) -> dict[str, str]:
    """Return the fields for language and prompt, whose names depend on the model."""
    language_field = "languages[]" if spec.model.startswith("gpt-transcribe") else "language"
    language = _language(account, spec)
    hints = {language_field: language} if language else {}
    if "diarize" in spec.model:
        return {**hints, "chunking_strategy": "auto"}
    return {**hints, **({"prompt": spec.prompt} if spec.prompt else {})}


def _language(account: Account, spec: RecognitionSpec) -> str | None:
    """Return the language without script and region. If there is none, the model detects it."""
    offered = WHISPER_1 if spec.model == "whisper-1" else WHISPER
    code = code_if_any(account.platform, spec.language_code, offered, passes_on="whisper" not in spec.model)
    return code.partition("-")[0] if code else None


async def _read_whole(response: Incoming) -> AsyncGenerator[Transcript]:
    yield parse_complete(response.vendor, await response.json())


def parse_complete(vendor: str, response: Any) -> Transcript:
    """Return the transcript of a response that was not streamed. Raise its error if it has no text."""
    value = object_of(response)
    if (error := value.get("error")) and is_error(error):
        raise error_in_stream(vendor, error)
    text, segments = value.get("text"), value.get("segments")
    if isinstance(segments, list) and segments and all(map(_has_text, segments)):
        text = "".join(segment["text"] for segment in segments if not _is_hallucinated(segment))
    if not isinstance(text, str | list):
        raise Garbled(vendor, "sent a response without a text")
    return Transcript(text_of(text).strip(), final=True, seconds=_seconds(value))


def _has_text(segment: Any) -> bool:
    return isinstance(object_of(segment).get("text"), str)


def _is_hallucinated(segment: Mapping[str, Any]) -> bool:
    """Return whether the text of a segment was hallucinated during silence. One without figures was not."""
    no_speech, probability = number_of(segment.get("no_speech_prob")), number_of(segment.get("avg_logprob"))
    if no_speech is None or probability is None:
        return False
    return no_speech > _MAX_NO_SPEECH_PROBABILITY and probability < _MIN_LOG_PROBABILITY


def _seconds(value: Mapping[str, Any]) -> float | None:
    billed_seconds = number_of(object_of(value.get("usage")).get("seconds"))
    return number_of(value.get("duration")) if billed_seconds is None else billed_seconds


async def _read_stream(response: Incoming) -> AsyncGenerator[Transcript]:
    """Yield the text so far each time it grows, and the complete text at the end."""
    events = TranscriptEvents(response.vendor)
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            if (transcript := events.feed(piece)) is not None:
                yield transcript
            if events.done:
                break
    if not events.done:
        raise Garbled(response.vendor, "ended its transcript without a final event", retryable=True)
    await response.drain()


class TranscriptEvents:
    """Parses `transcript.text.delta` events and the final `transcript.text.done`. Does no I/O.

    Some servers send chunks in the form of chat completions instead, such as vLLM.
    """

    def __init__(self, vendor: str) -> None:
        self.done = False
        self._vendor = vendor
        self._parser = SseParser()
        self._events = JsonEvents()
        self._text = ""

    def feed(self, piece: bytes) -> Transcript | None:
        """Return the text so far if `piece` extends or completes it, else `None`."""
        text_before = self._text
        try:
            for payload in self._parser.payloads(piece):
                if self.done:
                    break
                if is_end_mark(payload):
                    self._end("")
                else:
                    self._read(self._events.decode(payload))
        except ValueError:
            raise Garbled(self._vendor, "sent a malformed event") from None
        if self.done or self._text != text_before:
            return Transcript(self._text.strip(), final=self.done)
        return None

    def _read(self, event: Mapping[str, Any]) -> None:
        if (error := event.get("error")) and is_error(error):
            raise error_in_stream(self._vendor, error)
        match event.get("type"):
            case "transcript.text.delta":
                self._text += self._events.joined(text_of(event.get("delta")), is_last=False)
            case "transcript.text.done":
                text = event.get("text")
                if not isinstance(text, str | list) and not self._text:
                    raise ValueError("the event has no text")
                self._end(text_of(text))
            case _:
                for choice in objects_of(event.get("choices")):
                    text = text_of(object_of(choice.get("delta")).get("content"))
                    self._text += self._events.joined(text, is_last=False)

    def _end(self, text: str) -> None:
        """End with the final text, or with the parts so far if it is empty."""
        parts = self._text + self._events.joined("", is_last=True)
        self._text, self.done = self._events.joined(text, is_last=True) or parts, True
