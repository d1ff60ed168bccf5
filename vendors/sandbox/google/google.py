"""Google Cloud's speech over REST: synthesis, recognition, and the tokens of service accounts."""

import math
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import jwt
from aiohttp import web

from streams.audio.audio import wav_header
from streams.audio.codec import STEREO, codec_of
from streams.audio.formats import sniff
from streams.audio.signatures import AMR, AMR_WB, FLAC, MP3, OGG, WAV, WEBM
from streams.wire.codec import dumps
from vendors.sandbox.calls import Call
from vendors.sandbox.content import mp3, recording, speech, speech_ms
from vendors.sandbox.google.dialect import dialect, invalid, part, read_json
from vendors.sandbox.sandbox import Sandbox
from vendors.speech.languages import GOOGLE_RECOGNITION, GOOGLE_SYNTHESIS

GOOGLE = dialect("google")

_INPUTS = ("text", "ssml", "markup")
_INPUT_BYTES = 5_000
_SENTENCE_BYTES = 1_500
_SENTENCE_END = re.compile(r"[.!?…。！？;]")  # noqa: RUF001 - punctuation of scripts without spaces
_LOCALE = re.compile(r"([a-z]{2,3}-(?:[A-Z]{2}|\d{3}))-")
_VOICE_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-(?:[A-Z]{2}|\d{3}))?", re.IGNORECASE)
"""There is no script in it."""
_NEWER = re.compile(r"Chirp|Journey|Studio")
_ENCODINGS = {"LINEAR16", "MP3"}
_SYNC_SECONDS = 60
_SYNC_BYTES = 10_485_760
_ENCODING_NAMES = (
    "ENCODING_UNSPECIFIED", "LINEAR16", "FLAC", "MULAW", "AMR", "AMR_WB", "OGG_OPUS",
    "SPEEX_WITH_HEADER_BYTE", "MP3", "WEBM_OPUS",
)  # fmt: skip
"""Encodings in the order of their numbers. Requests may use names or numbers."""
_ENCODINGS_BY_TYPE = {
    None: {"LINEAR16", "MULAW"},
    WAV: {"ENCODING_UNSPECIFIED", "LINEAR16", "MULAW"},
    FLAC: {"ENCODING_UNSPECIFIED", "FLAC"},
    OGG: {"OGG_OPUS", "SPEEX_WITH_HEADER_BYTE"},
    WEBM: {"WEBM_OPUS"},
    MP3: {"MP3"},
    AMR: {"AMR"},
    AMR_WB: {"AMR_WB"},
}
_WITH_RATE = {"LINEAR16", "MULAW", "AMR", "AMR_WB", "SPEEX_WITH_HEADER_BYTE", "MP3"}
_TOKEN_URL = "https://oauth2.googleapis.com/token"  # noqa: S105 - a URL
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_TOKEN_S = 3_599
_SYNTHESIS_FIELDS = {"input", "voice", "audioConfig", "advancedVoiceOptions"}


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    return [
        sandbox.post("/google/v1/text:synthesize", GOOGLE, "tts", _synthesize),
        sandbox.post("/google/v1beta1/text:synthesize", GOOGLE, "tts", _synthesize_timed),
        sandbox.get("/google/v1/voices", GOOGLE, "voices", _voices),
        sandbox.post("/google/v1/speech:recognize", GOOGLE, "stt", _recognize),
        web.post("/google/token", _token),
    ]


async def _token(request: web.Request) -> web.Response:
    """Issue a token for an assertion. If the id of its key is a key of the sandbox, that key is the token."""
    form = await request.post()
    try:
        kid = _check_assertion(str(form.get("grant_type")), str(form.get("assertion")))
    except jwt.InvalidTokenError as error:
        fault = {"error": "invalid_grant", "error_description": str(error)}
        return web.Response(status=400, body=dumps(fault), content_type="application/json")
    token = kid if kid.partition(",")[0] in {"sandbox", "wrong"} else f"ya29.{kid}"
    response: dict[str, Any] = {"access_token": token, "expires_in": _TOKEN_S, "token_type": "Bearer"}
    return web.Response(body=dumps(response), content_type="application/json")


def _check_assertion(grant_type: str, assertion: str) -> str:
    """Validate an assertion except for its signature, and return the id of its key."""
    if grant_type != _GRANT:
        raise jwt.InvalidTokenError("Invalid grant_type.")
    head = jwt.get_unverified_header(assertion)
    claims = jwt.decode(assertion, options={"verify_signature": False})
    if head.get("alg") != "RS256" or claims.get("aud") != _TOKEN_URL or not claims.get("iss"):
        raise jwt.InvalidTokenError("Invalid JWT.")
    if not claims.get("scope"):
        raise jwt.InvalidTokenError("Invalid OAuth scope or ID token audience provided.")
    issued, expires = claims.get("iat", 0), claims.get("exp", 0)
    if expires - issued > 3600 or not issued - 60 <= time.time() < expires:
        message = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
        raise jwt.InvalidTokenError(message)
    return str(head.get("kid", "none"))


@dataclass(frozen=True, slots=True)
class _Text:
    """The text to synthesize, with the names and offsets of its marks."""

    text: str
    marks: list[tuple[str, int]]


async def _synthesize(call: Call) -> None:
    body = await read_json(call, _SYNTHESIS_FIELDS)
    response, _ = await _audio(call, body)
    await call.answer(response, empty={"audioContent": ""})


async def _synthesize_timed(call: Call) -> None:
    body = await read_json(call, _SYNTHESIS_FIELDS | {"enableTimePointing"})
    response, (parsed, whole_ms) = await _audio(call, body)
    points: list[dict[str, Any]] = []
    if "SSML_MARK" in (body.get("enableTimePointing") or ()):
        each_ms = whole_ms / max(1, len(parsed.text))
        points = [{"markName": name, "timeSeconds": round(at * each_ms) / 1000} for name, at in parsed.marks]
    timed = {"timepoints": [*call.odd, *points], "audioConfig": body["audioConfig"]}
    await call.answer(response | timed, empty={"audioContent": ""} | timed)


async def _audio(call: Call, body: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[_Text, int]]:
    input_, voice, config = (part(body, name) for name in ("input", "voice", "audioConfig"))
    parsed = _input(input_, voice)
    _check_voice(voice, config)
    encoding = config.get("audioEncoding")
    if encoding not in _ENCODINGS:
        call.unsupported(f"the audio encoding {encoding} is not supported")
    rate, speed = int(config.get("sampleRateHertz") or 24_000), float(config.get("speakingRate") or 1)
    call.record(voice=voice.get("name", ""), encoding=encoding, marks=len(parsed.marks))
    call.charge(characters=len(parsed.text))
    pcm = speech(parsed.text, rate, speed=speed)
    audio = mp3(pcm, rate) if encoding == "MP3" else wav_header(rate, data_bytes=len(pcm)) + pcm
    return {"audioContent": b64encode(audio).decode()}, (parsed, speech_ms(parsed.text, speed=speed))


def _input(input_: Mapping[str, Any], voice: Mapping[str, Any]) -> _Text:
    names = [name for name in _INPUTS if input_.get(name)]
    if len(names) != 1:
        raise invalid("Invalid input oneof field not set.")
    raw = str(input_[names[0]])
    if len(raw.encode()) > _INPUT_BYTES:
        message = (
            "Either `input.text` or `input.ssml` is longer than the limit of 5000 bytes. This limit is different"
        )
        raise invalid(f"{message} from quotas. To fix, reduce the byte length of the characters in this request.")
    if names[0] == "ssml" and _NEWER.search(voice.get("name", "")):
        raise invalid("This voice does not support SSML input.")
    if input_.get("prompt") and not voice.get("modelName"):
        raise invalid("Prompt is only supported for Gemini TTS.")
    parsed = _parse_ssml(raw) if names[0] == "ssml" else _Text(raw, [])
    for sentence in _SENTENCE_END.split(parsed.text):
        if len(sentence.encode()) > _SENTENCE_BYTES:
            message = (
                "This request contains sentences that are too long. To fix, split up long sentences with sentence"
            )
            raise invalid(f'{message} ending punctuation e.g. periods. Sentence starting with: "{sentence[:10]}"')
    return parsed


def _parse_ssml(raw: str) -> _Text:
    try:
        root = None if "<!" in raw else ET.fromstring(raw)  # noqa: S314 - the sandbox is for tests on this machine
    except ET.ParseError:
        root = None
    if root is None or root.tag != "speak":
        raise invalid("Invalid SSML. Newer voices like Neural2 require valid SSML.")
    text, marks = root.text or "", []
    for element in root.iter():
        if element is root:
            continue
        if element.tag == "mark":
            marks.append((element.get("name", ""), len(text)))
        text += (element.text or "") + (element.tail or "")
    return _Text(text, marks)


def _check_voice(voice: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    language, name = voice.get("languageCode"), voice.get("name", "")
    if not language:
        raise invalid("Request is missing required field `voice.language_code`.")
    if not _VOICE_LANGUAGE.fullmatch(str(language)) or not GOOGLE_SYNTHESIS.find(language):
        raise invalid(f"Invalid voice: the language code '{language}' is not supported.")
    locale = _LOCALE.match(name)
    if locale and locale[1].lower() != str(language).lower():
        message = (
            f"Requested language code '{language}' doesn't match the voice '{name}''s language code '{locale[1]}'."
        )
        raise invalid(f"{message} Either pick a different voice, or change the requested language code.")
    if not locale and name and not voice.get("modelName"):
        raise invalid("This voice requires a model name to be specified.")
    rate = config.get("speakingRate")
    if rate is not None and "Journey" in name:
        raise invalid("This voice does not support speaking rate or pitch parameters at this time.")
    if rate is not None and not 0.25 <= rate <= 2.0:
        raise invalid("Invalid speaking_rate. Must be in the range [0.25, 2.0].")


async def _voices(call: Call) -> None:
    voices = [
        {"languageCodes": [name[:5]], "name": name, "ssmlGender": "FEMALE", "naturalSampleRateHertz": 24_000}
        for name in ("en-US-Neural2-C", "en-US-Chirp3-HD-Charon", "de-DE-Neural2-C")
        if name.lower().startswith(call.request.query.get("languageCode", "").lower())
    ]
    await call.answer({"voices": voices}, empty={})


async def _recognize(call: Call) -> None:
    body = await read_json(call, {"config", "audio"})
    config = part(body, "config")
    audio = _content(part(body, "audio"))
    if str(config.get("languageCode")) not in GOOGLE_RECOGNITION.codes:
        raise invalid("Invalid recognition 'config': bad language code.")
    encoding, rate = _encoding(config.get("encoding") or 0), config.get("sampleRateHertz")
    if encoding in _WITH_RATE and not rate:
        raise invalid("Invalid recognition 'config': bad sample rate hertz.")
    if encoding not in _ENCODINGS_BY_TYPE.get(sniff(audio), ()):
        raise invalid("Invalid recognition 'config': bad encoding.")
    _check_channels(audio, config.get("audioChannelCount") or 1)
    recorded = recording(audio, sample_rate=rate if encoding == "LINEAR16" and audio[:4] != b"RIFF" else None)
    if recorded is None:
        raise invalid("Invalid recognition 'config': bad encoding.")
    if recorded.seconds > _SYNC_SECONDS:
        message = (
            "Sync input too long. For audio longer than 1 min use LongRunningRecognize with a 'uri' parameter."
        )
        raise invalid(message)
    billed = math.ceil(recorded.seconds)
    call.record(encoding=encoding, language=config["languageCode"], seconds=recorded.seconds)
    call.charge(seconds=billed)
    response = {"totalBilledTime": f"{billed}s", "requestId": str(call.entry.id)}
    results = _results(recorded.transcript(call.key_options.text), recorded.seconds, config["languageCode"])
    for result in results:
        result["alternatives"] = [*call.odd, *result["alternatives"]]
    results = [*call.odd, *results]
    await call.answer({**({"results": results} if results else {}), **response}, empty=response)


def _check_channels(audio: bytes, count: int) -> None:
    mime_type = sniff(audio)
    if mime_type in {WAV, FLAC} and codec_of(audio, mime_type) == STEREO and count == 1:
        name = "WAV" if mime_type == WAV else "FLAC"
        raise invalid(f"Must use single channel (mono) audio, but {name} header indicates several channels.")


def _encoding(value: str | int) -> str:
    name = _ENCODING_NAMES[value] if isinstance(value, int) and value < len(_ENCODING_NAMES) else value
    if name not in _ENCODING_NAMES:
        raise invalid(f"Invalid value at 'config.encoding': {value}")
    return str(name)


def _results(text: str, seconds: float, language: str) -> list[dict[str, Any]]:
    """Return a result for each sentence. All but the first begin with a space."""
    return [
        {
            "alternatives": [{"transcript": sentence, "confidence": 0.98}],
            "resultEndTime": f"{seconds:.3f}s",
            "languageCode": language.lower(),
        }
        for sentence in re.findall(r"\s*\S.*?(?:[.!?](?=\s)|$)", text)
    ]


def _content(audio: Mapping[str, Any]) -> bytes:
    encoded = audio.get("content")
    if not encoded:
        raise invalid("RecognitionAudio not set.")
    try:
        raw = b64decode(encoded, validate=True)
    except (ValueError, TypeError):
        raise invalid("Invalid value at 'audio.content' (TYPE_BYTES), Base64 decoding failed.") from None
    if len(raw) > _SYNC_BYTES:
        raise invalid(f"Request payload size exceeds the limit: {_SYNC_BYTES} bytes.")
    return raw
