"""What all OpenAI endpoints of the sandbox share: keys, headers, errors, models and the validation of bodies."""

import re
from collections.abc import Iterable, Mapping
from secrets import token_hex
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps, loads
from vendors.sandbox.calls import Call, Dialect, Framing, Refusal
from vendors.sandbox.faults import Fault, KeyOptions

_TEXT_MODELS = (
    "gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-3.5-turbo", "gpt-4-turbo",
)  # fmt: skip
REASONING_MODELS = ("gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5.1", "gpt-5.2", "o1", "o3", "o3-mini", "o4-mini")
AUDIO_MODELS = ("gpt-audio", "gpt-audio-mini", "gpt-audio-1.5", "gpt-4o-audio-preview", "gpt-4o-mini-audio-preview")
CHAT_MODELS = _TEXT_MODELS + REASONING_MODELS + AUDIO_MODELS
SPEECH_MODELS = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
TRANSCRIPTION_MODELS = (
    "whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-4o-transcribe-diarize", "gpt-transcribe",
)  # fmt: skip
MODELS = CHAT_MODELS + SPEECH_MODELS + TRANSCRIPTION_MODELS

VOICES = (
    "alloy", "ash", "ballad", "coral", "echo", "fable", "onyx", "nova", "sage", "shimmer", "verse", "marin",
    "cedar",
)  # fmt: skip

SAMPLE_RATE = 24_000
AUDIO_TOKEN_MS = 50
"""Length of one token of generated audio. A token of input audio has twice that length."""

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$|-\d{4}$")
_REQUESTS = 10_000
_TOKENS = 2_000_000


def event(value: Any) -> bytes:
    return b"data: " + dumps(value) + b"\n\n"


def error_body(
    message: str, *, kind: str = "invalid_request_error", param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def invalid(message: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> Refusal:
    return Refusal(status, error_body(message, param=param, code=code))


def _key(request: web.Request) -> str:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    wait = {
        "retry-after": f"{key_options.retry_after_s:g}",
        "retry-after-ms": f"{key_options.retry_after_s * 1000:g}",
    }
    match fault:
        case Fault.UNAUTHORIZED:
            message = "Incorrect API key provided. You can find your API key at https://platform.openai.com."
            return invalid(message, code="invalid_api_key", status=401)
        case Fault.RATE_LIMITED:
            message = f"Rate limit reached. Please try again in {key_options.retry_after_s:g}s."
            return Refusal(429, error_body(message, kind="requests", code="rate_limit_exceeded"), wait)
        case Fault.OUT_OF_QUOTA:
            message = "You exceeded your current quota, please check your plan and billing details."
            return Refusal(429, error_body(message, kind="insufficient_quota", code="insufficient_quota"))
        case Fault.UNAVAILABLE:
            message = "The engine is currently overloaded, please try again later"
            return Refusal(503, error_body(message, kind="server_error"), wait)
        case _:
            message = "The server had an error while processing your request. Sorry about that!"
            return Refusal(500, error_body(message, kind="server_error"))


def _headers(request: web.Request) -> Mapping[str, str]:
    return {
        "x-request-id": f"req_{token_hex(16)}",
        "openai-processing-ms": "7",
        "openai-version": "2020-10-01",
        "openai-organization": "sandbox",
        "x-ratelimit-limit-requests": str(_REQUESTS),
        "x-ratelimit-remaining-requests": str(_REQUESTS - 1),
        "x-ratelimit-reset-requests": "6ms",
        "x-ratelimit-limit-tokens": str(_TOKENS),
        "x-ratelimit-remaining-tokens": str(_TOKENS - 100),
        "x-ratelimit-reset-tokens": "3ms",
    }


OPENAI = Dialect("openai", _key, _refuse, _headers)

DONE = b"data: [DONE]\n\n"
EVENTS = Framing(
    "text/event-stream; charset=utf-8",
    error=b"data: " + _refuse(Fault.SERVER_ERROR, KeyOptions()).body + b"\n\n",
    malformed=b'data: {"id":"chatcmpl-1","object":"chat.completion.chu\n\n',
    odd_frames=lambda odd: [b"data: " + odd + b"\n\n"],
)


def family(model: str) -> str:
    """Return the family of a model, such as `gpt-4o` for the snapshot `gpt-4o-2024-11-20`."""
    return _SNAPSHOT.sub("", model)


def check_model(model: Any, known: Iterable[str]) -> str:
    """Return the family of a model. Raise `Refusal` unless it is one of `known`."""
    if not isinstance(model, str) or not model:
        raise invalid("you must provide a model parameter")
    if family(model) not in MODELS:
        message = f"The model `{model}` does not exist or you do not have access to it."
        raise invalid(message, param=None, code="model_not_found", status=404)
    if family(model) not in known:
        raise invalid(f"The model `{model}` is not supported by this endpoint.", param="model", status=404)
    return family(model)


async def read_json(call: Call, fields: Iterable[str]) -> dict[str, Any]:
    """Read the JSON object of a request. Raise `Refusal` for a field that is not one of `fields`."""
    try:
        body = loads(await call.request.read())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        message = "We could not parse the JSON body of your request. The OpenAI API expects a JSON payload."
        raise invalid(message)
    for name in body:
        if name not in fields:
            raise invalid(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    return body


def required(body: Mapping[str, Any], name: str) -> Any:
    if body.get(name) is None:
        raise invalid(f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter")
    return body[name]


def text(body: Mapping[str, Any], name: str, *, maximum: int | None = None, minimum: int = 0) -> str | None:
    """Return a string field with `minimum` to `maximum` characters, or None if it is absent."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong_type(name, "a string", value)
    if len(value) < minimum:
        message = f"Invalid '{name}': string too short. Expected a string with minimum length {minimum}."
        raise invalid(message, param=name, code="string_below_min_length" if value else "empty_string")
    if maximum is not None and len(value) > maximum:
        message = (
            f"Invalid '{name}': string too long. Expected a string with maximum length {maximum}, "
            f"but got a string with length {len(value)} instead."
        )
        raise invalid(message, param=name, code="string_above_max_length")
    return value


def number(body: Mapping[str, Any], name: str, *, minimum: float, maximum: float | None = None) -> float | None:
    """Return a number field between `minimum` and `maximum`, or None if it is absent."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong_type(name, "a number", value)
    kind = "integer" if isinstance(value, int) else "decimal"
    if value < minimum:
        message = f"Invalid '{name}': {kind} below minimum value. Expected a value >= {minimum:g}."
        raise invalid(message, param=name, code=f"{kind}_below_min_value")
    if maximum is not None and value > maximum:
        message = f"Invalid '{name}': {kind} above maximum value. Expected a value <= {maximum:g}."
        raise invalid(message, param=name, code=f"{kind}_above_max_value")
    return value


def one_of(body: Mapping[str, Any], name: str, values: Iterable[str], *, default: str) -> str:
    value = body.get(name)
    if value is None:
        return default
    if value not in values:
        names = [f"'{option}'" for option in values]
        listed = f"{', '.join(names[:-1])}, and {names[-1]}" if len(names) > 1 else names[0]
        raise invalid(
            f"Invalid value: '{value}'. Supported values are: {listed}.", param=name, code="invalid_value"
        )
    return str(value)


def _wrong_type(name: str, expected: str, value: Any) -> Refusal:
    got = {str: "a string", bool: "a boolean", int: "an integer", float: "a decimal", list: "an array"}
    message = (
        f"Invalid type for '{name}': expected {expected}, but got {got.get(type(value), 'an object')} instead."
    )
    return invalid(message, param=name, code="invalid_type")
