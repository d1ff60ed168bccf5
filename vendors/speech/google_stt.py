"""Speech recognition by Google Cloud: up to a minute of audio in each request, the text in one response."""

import re
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from pydantic import Field

from streams.audio.audio import PCM, WAV_HEAD_BYTES, WavFormat, parse_wav, pcm_seconds, wav_header
from streams.audio.codec import MULAW, OPUS, PCM_16
from streams.audio.durations import duration_s
from streams.audio.mp3 import Mp3Joiner, id3v2_bytes
from streams.audio.pcm import has_sound
from streams.audio.signatures import AMR, AMR_WB, FLAC, MP3, OGG, WAV, WEBM
from streams.audio.slices import slices
from streams.loop_time import wait_for_loop_time
from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.account import Account, RecognitionSpec
from vendors.errors import Garbled, Refused
from vendors.google import GoogleHttp, response_object
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp
from vendors.json_events import number_of, objects_of, text_of
from vendors.protocols import ANY_CODEC, AcceptedAudio, AudioFormat, AudioInput, Transcript
from vendors.speech.azure.languages import word_gap
from vendors.speech.languages import GOOGLE_RECOGNITION, vendor_code

_SERVICE = "speech"
_EXAMINED_BYTES = 16 * 1024
_SYNC_S = 60
_PIECE_S = 59
_ENCODINGS = {
    WAV: {},  # The headers of WAV and FLAC state these fields.
    FLAC: {},
    OGG: {"encoding": "OGG_OPUS", "sampleRateHertz": 48_000},
    WEBM: {"encoding": "WEBM_OPUS", "sampleRateHertz": 48_000},
    AMR: {"encoding": "AMR", "sampleRateHertz": 8_000},
    AMR_WB: {"encoding": "AMR_WB", "sampleRateHertz": 16_000},
}
_ACCEPTED = AcceptedAudio(
    {
        "audio/pcm": ANY_CODEC,
        WAV: frozenset({PCM_16, MULAW}),
        FLAC: frozenset(),
        OGG: frozenset({OPUS}),
        WEBM: frozenset({OPUS}),
        MP3: ANY_CODEC,
        AMR: ANY_CODEC,
        AMR_WB: ANY_CODEC,
    },
    max_file_s=_SYNC_S,
)
"""Of FLAC and WAV, only one channel: the vendor refuses others, or recognizes the first one only."""
_PIECE_BYTES = 48 * 1024
_MAX_PHRASE_CHARACTERS = 100
_MAX_PHRASES = 500


class Options(Model):
    """The vendor-specific settings of a strategy."""

    extra: dict[str, Any] = Field(default_factory=dict)
    """Additional fields of `config`, such as `profanityFilter` or `useEnhanced`."""


class GoogleRecognition:
    """One model of one account.

    Without `model` the vendor chooses one. `prompt` is a comma-separated list of phrases. PCM and WAV of more than
    a minute are recognized in pieces, one after the other.
    """

    Options = Options
    accepted = _ACCEPTED

    def __init__(self, http: VendorHttp, account: Account, spec: RecognitionSpec) -> None:
        options = Options.of(spec.options)
        self._http = GoogleHttp(http, account)
        self._account = account
        self._connect_s = spec.connect_s
        self._word_gap = word_gap(spec.language_code)
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
        first, *rest = self._pieces(data, audio_format)
        begin = await self._recognized(config, first)
        async with aclosing(self._joined(config, begin, rest)) as transcripts:
            yield transcripts

    async def _joined(
        self, config: Mapping[str, Any], begin: Transcript, rest: Sequence[bytes]
    ) -> AsyncGenerator[Transcript]:
        transcripts = [begin, *[await self._recognized(config, piece) for piece in rest]]
        billed = [transcript.seconds for transcript in transcripts if transcript.seconds is not None]
        text = self._word_gap.join(transcript.text for transcript in transcripts if transcript.text)
        yield Transcript(text, final=True, seconds=sum(billed) if billed else None)

    async def _recognized(self, config: Mapping[str, Any], audio: bytes) -> Transcript:
        call = Outgoing(
            self._account.platform,
            self._account.url("/v1/speech:recognize").replace("{service}", _SERVICE),
            headers={"Content-Type": "application/json"},
            body=await _body(config, audio),
            connect_s=self._connect_s,
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            return _transcript(response.vendor, response_object(response.vendor, await response.json()))

    def _encoding(self, data: bytes, audio_format: AudioFormat) -> Mapping[str, Any]:
        """Return the fields that the vendor cannot derive from the audio itself."""
        mime_type = audio_format.mime_type
        if mime_type == "audio/pcm":
            return {"encoding": "LINEAR16", "sampleRateHertz": audio_format.sample_rate}
        if mime_type == MP3:
            joiner = Mp3Joiner()
            joiner.feed(data[id3v2_bytes(data) :][:_EXAMINED_BYTES])
            return {"encoding": "MP3", "sampleRateHertz": joiner.sample_rate or 44_100}
        if mime_type not in _ENCODINGS:
            raise Refused(self._account.platform, f"does not accept {audio_format}")
        return _ENCODINGS[mime_type]

    def _pieces(self, data: bytes, audio_format: AudioFormat) -> list[bytes]:
        """Cut audio that is too long for one call. Pieces without sound are left out."""
        seconds = duration_s(data, audio_format.mime_type) or 0.0
        if audio_format.mime_type == "audio/pcm":
            seconds = pcm_seconds(len(data), audio_format.sample_rate)
        if seconds <= _SYNC_S:
            return [data]
        if audio_format.mime_type == "audio/pcm":
            return _slices(data, WavFormat(PCM, 1, audio_format.sample_rate, 16, 0, None), header=False)
        wav = parse_wav(data[:WAV_HEAD_BYTES]) if audio_format.mime_type == WAV else None
        if wav is None or (wav.format_tag, wav.bits) != (PCM, 16):
            problem = f"does not accept more than {_SYNC_S} s of {audio_format}, and this has {seconds:.0f} s"
            raise Refused(self._account.platform, problem)
        return _slices(data, wav, header=True)


def _slices(data: bytes, wav: WavFormat, *, header: bool) -> list[bytes]:
    end = len(data) if wav.data_bytes is None else wav.data_offset + wav.data_bytes
    samples, rate, channels = data[wav.data_offset : end], wav.sample_rate, wav.channels
    cut = list(slices(samples, sample_rate=rate, channels=channels, max_s=_PIECE_S))
    audible = [piece for piece in cut if has_sound(piece)] or cut[:1]
    if not header:
        return audible
    return [wav_header(rate, channels=channels, data_bytes=len(piece)) + piece for piece in audible]


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
    results = value.get("results") or []
    text = "".join(map(_best, objects_of(results)))
    if not text and not all(map(_is_silent, results if isinstance(results, list) else [results])):
        raise Garbled(vendor, "sent malformed results")
    billed = value.get("totalBilledTime")
    seconds = number_of(billed.removesuffix("s") if isinstance(billed, str) else billed)
    return Transcript(text.strip(), final=True, seconds=seconds)


def _best(section: Mapping[str, Any]) -> str:
    texts = (text_of(alternative.get("transcript")) for alternative in objects_of(section.get("alternatives")))
    return next(filter(None, texts), "")


def _is_silent(section: Any) -> bool:
    """Return whether a section has no text, rather than one that cannot be read."""
    alternatives = section.get("alternatives") or [{}] if isinstance(section, dict) else []
    found = objects_of(alternatives)
    return bool(found) and not any(alternative.get("transcript") for alternative in found)
