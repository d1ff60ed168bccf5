"""OpenAI's `POST /audio/transcriptions`: complete, or streamed by the newer models."""

import math
import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from multidict import MultiMapping

from streams.audio.codec import FRAGMENTED, codec_of
from streams.audio.formats import sniff
from streams.audio.signatures import FLAC, MP3, MP4, OGG, WAV, WEBM
from vendors.sandbox.calls import Call
from vendors.sandbox.content import Recording, recording, timed_words, tokens
from vendors.sandbox.openai.dialect import EVENTS, OPENAI, TRANSCRIPTION_MODELS, check_model, event, invalid
from vendors.sandbox.sandbox import Sandbox
from vendors.speech.languages import WHISPER, WHISPER_1

_EXTENSIONS = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm")
_TYPES = frozenset({FLAC, MP3, MP4, OGG, WAV, WEBM})
_FIELDS = frozenset({
    "model", "language", "languages[]", "prompt", "response_format", "temperature", "stream", "include[]",
    "timestamp_granularities[]", "chunking_strategy", "known_speaker_names[]", "known_speaker_references[]",
})  # fmt: skip
_MAX_BYTES = 25 * 1024 * 1024
_MIN_AUDIO_S = 0.1
_MAX_AUDIO_S = 1_500
_UNCHUNKED_S = 30
_TOKEN_S = 0.1
_WHISPER = "whisper-1"
_DIARIZE = "gpt-4o-transcribe-diarize"
_LANGUAGES_LIST = "gpt-transcribe"


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    return [sandbox.post("/openai/v1/audio/transcriptions", OPENAI, "stt", _transcribe)]


async def _transcribe(call: Call) -> None:
    form = await _form(call)
    model = check_model(form.get("model"), TRANSCRIPTION_MODELS)
    _check(form, model)
    recorded = _recording(form, model)
    text = recorded.transcript(call.key_options.text)
    call.record(**{name: value for name, value in form.items() if isinstance(value, str)}, seconds=recorded.seconds)
    if model == _WHISPER:
        call.charge(seconds=math.ceil(recorded.seconds))
    else:
        call.charge(
            audio_tokens=math.ceil(recorded.seconds / _TOKEN_S), text_tokens=tokens(str(form.get("prompt", "")))
        )
    response_format = form.get("response_format", "json")
    if model != _WHISPER and form.get("stream") == "true":
        await _stream(call, text)
    elif response_format == "text":
        await call.answer(f"{text}\n".encode(), empty=b"\n", content_type="text/plain")
    else:
        call.charge(**({} if model == _WHISPER else {"output_tokens": tokens(text)}))
        detail = _verbose(form, recorded, text) if response_format == "verbose_json" else {}
        usage = _usage(call.billed)
        if call.odd:
            detail["segments"] = [*detail.get("segments", []), *call.odd]
        await call.answer({"text": text, **detail, "usage": usage}, empty={"text": "", "usage": usage})


async def _stream(call: Call, text: str) -> None:
    sent_text = ""
    async with call.stream(EVENTS) as flow:
        for word in re.findall(r"\s*\S+", text):
            outputs_before = flow.entry.outputs
            await flow.output(event({"type": "transcript.text.delta", "delta": word}), output_tokens=1)
            sent_text += word if flow.entry.outputs > outputs_before else ""
        done = {"type": "transcript.text.done", "text": sent_text, "usage": _usage(call.billed)}
        await flow.frame(event(done))


async def _form(call: Call) -> MultiMapping[Any]:
    if call.request.content_type != "multipart/form-data":
        message = "We could not parse your request: it must be multipart/form-data."
        raise invalid(message, status=415)
    form = await call.request.post()
    for name in form:
        if name not in _FIELDS and name != "file":
            raise invalid(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    return form


def _check_language(code: str, model: str) -> None:
    if not re.fullmatch("[a-z]{2,3}", code):
        message = f"Invalid language '{code}'. Language parameter must be specified in ISO-639-1 format."
        raise invalid(message, param="language", code="invalid_language_format")
    if code not in (WHISPER_1 if model == _WHISPER else WHISPER).codes:
        raise invalid(f"Language '{code}' is not supported.", param="language", code="unsupported_language")


def _check(form: MultiMapping[Any], model: str) -> None:
    language = form.get("language")
    if language is not None and model == _LANGUAGES_LIST:
        raise _unsupported("language", model)
    for code in form.getall("languages[]", [] if language is None else [language]):
        _check_language(code, model)
    if form.get("prompt") is not None and model == _DIARIZE:
        raise _unsupported("prompt", model)
    formats = _formats(model)
    response_format = form.get("response_format", "json")
    if response_format not in formats:
        listed = " or ".join(f"'{name}'" for name in formats)
        message = (
            f"response_format '{response_format}' is not compatible with model '{model}'. Use {listed} instead."
        )
        raise invalid(message, param="response_format", code="unsupported_value")
    if form.get("timestamp_granularities[]") is not None and response_format != "verbose_json":
        message = "timestamp_granularities needs response_format 'verbose_json'."
        raise invalid(message, param="timestamp_granularities", code="unsupported_value")


def _formats(model: str) -> tuple[str, ...]:
    if model == _WHISPER:
        return ("json", "text", "verbose_json")
    return ("json", "text", "diarized_json") if model == _DIARIZE else ("json", "text")


def _unsupported(name: str, model: str) -> Exception:
    message = f"Unsupported parameter: '{name}' is not supported with model '{model}'."
    return invalid(message, param=name, code="unsupported_parameter")


def _recording(form: MultiMapping[Any], model: str) -> Recording:
    file = form.get("file")
    if not isinstance(file, web.FileField):
        raise invalid("Missing required parameter: 'file'.", param="file", code="missing_required_parameter")
    if file.filename.rpartition(".")[2].lower() not in _EXTENSIONS:
        raise invalid(f"Invalid file format. Supported formats: {list(_EXTENSIONS)}", param="file")
    content = file.file.read()
    if len(content) > _MAX_BYTES:
        message = f"Maximum content size limit ({_MAX_BYTES}) exceeded ({len(content)} bytes read)"
        raise invalid(message, status=413)
    mime_type = sniff(content)
    if mime_type == MP4 and codec_of(content, MP4) == FRAGMENTED:
        raise invalid(f"Invalid file format. Supported formats: {list(_EXTENSIONS)}", param="file")
    recorded = recording(content) if mime_type in _TYPES else None
    if recorded is None:
        message = "Audio file might be corrupted or unsupported"
        raise invalid(message, param="file", code="invalid_value")
    _check_length(form, model, recorded.seconds)
    return recorded


def _check_length(form: MultiMapping[Any], model: str, seconds: float) -> None:
    if seconds < _MIN_AUDIO_S:
        message = f"Audio file is too short. Minimum audio length is {_MIN_AUDIO_S} seconds."
        raise invalid(message, param="file", code="audio_too_short")
    if seconds > _MAX_AUDIO_S and model != _WHISPER:
        message = f"audio duration {seconds:g} seconds is longer than {_MAX_AUDIO_S} seconds, this model's maximum"
        raise invalid(message, param="file", code="invalid_value")
    if model == _DIARIZE and seconds > _UNCHUNKED_S and form.get("chunking_strategy") is None:
        message = "chunking_strategy is required for diarization models"
        raise invalid(message, param="chunking_strategy", code="missing_required_parameter")


def _verbose(form: MultiMapping[Any], recorded: Recording, text: str) -> dict[str, Any]:
    whole_ms = round(recorded.seconds * 1000)
    segment = {
        "id": 0,
        "seek": 0,
        "start": 0.0,
        "end": recorded.seconds,
        "text": text,
        "tokens": [],
        "temperature": 0.0,
        "avg_logprob": -0.25,
        "compression_ratio": 1.0,
        "no_speech_prob": 0.01,
    }
    detail = {"task": "transcribe", "language": "english", "duration": recorded.seconds}
    granularities = form.getall("timestamp_granularities[]", ["segment"])
    if "segment" in granularities:
        detail["segments"] = [segment] if text else []
    if "word" in granularities:
        detail["words"] = [
            {"word": word.text, "start": word.begin_ms / 1000, "end": word.end_ms / 1000}
            for word in timed_words(text, whole_ms)
        ]
    return detail


def _usage(billed: Mapping[str, float]) -> dict[str, Any]:
    if "seconds" in billed:
        return {"type": "duration", "seconds": billed["seconds"]}
    text, audio, output = (billed.get(unit, 0) for unit in ("text_tokens", "audio_tokens", "output_tokens"))
    return {
        "type": "tokens",
        "input_tokens": text + audio,
        "input_token_details": {"text_tokens": text, "audio_tokens": audio},
        "output_tokens": output,
        "total_tokens": text + audio + output,
    }
