"""Transcription of OpenAI's protocol: a whole file up, its text down."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import aiohttp

from streams.audio import wav_header
from streams.wire.model import Model
from vendors.account import Account, RecognitionSpec
from vendors.errors import Garbled
from vendors.protocols import AudioFormat, AudioInput, Transcript
from vendors.transport import Outgoing, VendorHttp

_EXTENSIONS = {
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/webm": "webm",
}


class TranscriptionOptions(Model):
    response_format: Literal["json", "verbose_json"] = "json"


class OpenAITranscription:
    """One model of one account. Nothing comes back before the whole file is there."""

    Options = TranscriptionOptions

    def __init__(self, http: VendorHttp, account: Account, spec: RecognitionSpec) -> None:
        self._options = TranscriptionOptions.of(spec.options)
        self._http = http
        self._account = account
        self._spec = spec

    @asynccontextmanager
    async def transcribe(
        self, audio: AudioInput, audio_format: AudioFormat
    ) -> AsyncIterator[AsyncIterator[Transcript]]:
        heard = b"".join([piece async for piece in audio.read()])
        if audio_format.mime_type == "audio/pcm":
            heard = wav_header(audio_format.sample_rate, data_bytes=len(heard)) + heard
            mime_type = "audio/wav"
        else:
            mime_type = audio_format.mime_type
        call = Outgoing(
            self._account.platform,
            self._account.url("/audio/transcriptions"),
            headers=self._account.bearer(),
            body=self._form(heard, mime_type),
            connect_s=self._spec.connect_s,
        )
        async with self._http.stream(call) as answer:
            value = await answer.json()
            text = value.get("text") if isinstance(value, dict) else None
            if not isinstance(text, str):
                raise Garbled(answer.vendor, "answered without a text")
            yield _once(Transcript(text.strip(), final=True))

    def _form(self, heard: bytes, mime_type: str) -> aiohttp.FormData:
        form = aiohttp.FormData()
        form.add_field("model", self._spec.model)
        form.add_field("response_format", self._options.response_format)
        form.add_field("language", self._spec.language_code.partition("-")[0].lower())
        if self._spec.prompt:
            form.add_field("prompt", self._spec.prompt)
        filename = f"audio.{_EXTENSIONS.get(mime_type, 'bin')}"
        form.add_field("file", heard, filename=filename, content_type=mime_type)
        return form


async def _once(transcript: Transcript) -> AsyncIterator[Transcript]:
    yield transcript
