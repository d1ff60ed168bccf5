"""Speech recognition by Google Cloud: up to a minute of audio in one request, the text in one response."""

import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from pydantic import Field

from streams.audio.mp3 import Mp3Joiner, id3v2_bytes
from streams.loop_time import wait_for_loop_time
from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.account import Account, RecognitionSpec
from vendors.errors import Garbled, Refused
from vendors.google import GoogleHttp, response_object
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioFormat, AudioInput, Transcript
from vendors.speech.languages import GOOGLE_RECOGNITION, vendor_code

_SERVICE = "speech"
_OPUS_RATE = 48_000
_EXAMINED_BYTES = 16 * 1024
_SELF_DESCRIBED = frozenset({"audio/wav", "audio/flac"})
_PIECE_BYTES = 48 * 1024
_MAX_PHRASE_CHARACTERS = 100
_MAX_PHRASES = 500


class Options(Model):
    """The vendor-specific settings of a strategy."""

    extra: dict[str, Any] = Field(default_factory=dict)
    """Additional fields of `config`, such as `profanityFilter` or `useEnhanced`."""


class GoogleRecognition:
    """One model of one account.

    Without `model` the vendor chooses one. `prompt` is a comma-separated list of phrases.
    """

    Options = Options

    def __init__(self, http: VendorHttp, account: Account, spec: RecognitionSpec) -> None:
        options = Options.of(spec.options)
        self._http = GoogleHttp(http, account)
        self._account = account
        self._connect_s = spec.connect_s
        phrases = [phrase for part in re.split(r"[,;\n]", spec.prompt) if (phrase := part.strip())]
        self._config: dict[str, Any] = {
            "languageCode": vendor_code(account.platform, spec.language_code, GOOGLE_RECOGNITION, passes_on=True),
            "enableAutomaticPunctuation": True,
            **({"model": spec.model} if spec.model else {}),
            **({"speechContexts": [{"phrases": _truncated(phrases)}]} if phrases else {}),
            **options.extra,
        }

    def streams(self, audio_format: AudioFormat) -> bool:
        return False

    @asynccontextmanager
    async def transcribe(
        self, audio: AudioInput, audio_format: AudioFormat
    ) -> AsyncIterator[AsyncIterator[Transcript]]:
        async with aclosing(audio.read()) as pieces:
            data = b"".join([piece async for piece in pieces])
        config = {**self._config, **self._encoding(data, audio_format)}
        call = Outgoing(
            self._account.platform,
            self._account.url("/v1/speech:recognize").replace("{service}", _SERVICE),
            headers={"Content-Type": "application/json"},
            body=await _body(config, data),
            connect_s=self._connect_s,
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            yield _single(_transcript(response.vendor, response_object(response.vendor, await response.json())))

    def _encoding(self, data: bytes, audio_format: AudioFormat) -> dict[str, Any]:
        """Return the fields that the vendor cannot derive from the audio itself."""
        match audio_format.mime_type:
            case mime_type if mime_type in _SELF_DESCRIBED:
                return {}
            case "audio/pcm":
                return {"encoding": "LINEAR16", "sampleRateHertz": audio_format.sample_rate}
            case "audio/ogg":
                return {"encoding": "OGG_OPUS", "sampleRateHertz": _OPUS_RATE}
            case "audio/webm":
                return {"encoding": "WEBM_OPUS", "sampleRateHertz": _OPUS_RATE}
            case "audio/mpeg":
                joiner = Mp3Joiner()
                joiner.feed(data[id3v2_bytes(data) :][:_EXAMINED_BYTES])
                return {"encoding": "MP3", "sampleRateHertz": joiner.sample_rate or 44_100}
            case mime_type:
                raise Refused(self._account.platform, f"does not accept {mime_type}")


async def _body(config: Mapping[str, Any], audio: bytes) -> bytes:
    """Return the JSON of a call. Its base64 is made in pieces, because that of 10 MiB takes up to 100 ms."""
    head, tail = dumps({"config": config, "audio": {"content": ""}})[:-3], b'"}}'
    parts = [head]
    for at in range(0, len(audio), _PIECE_BYTES):
        await wait_for_loop_time()
        parts.append(b64encode(audio[at : at + _PIECE_BYTES]))
    await wait_for_loop_time()
    return b"".join([*parts, tail])


def _truncated(phrases: list[str]) -> list[str]:
    return [phrase[:_MAX_PHRASE_CHARACTERS] for phrase in phrases[:_MAX_PHRASES]]


def _transcript(vendor: str, value: Mapping[str, Any]) -> Transcript:
    """Return the best alternative of each section. A response without results means silence."""
    try:
        text = "".join(
            result["alternatives"][0].get("transcript", "")
            for result in value.get("results") or ()
            if result.get("alternatives")
        )
        billed = value.get("totalBilledTime")
        seconds = float(billed.removesuffix("s")) if billed else None
    except (TypeError, ValueError, AttributeError, KeyError, IndexError):
        raise Garbled(vendor, "sent malformed results") from None
    return Transcript(text.strip(), final=True, seconds=seconds)


async def _single(transcript: Transcript) -> AsyncIterator[Transcript]:
    yield transcript
