"""Parse and validate a request for one of OpenAI's chat completions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from vendors.protocols import ChatMessage, Role
from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.content import tokens
from vendors.sandbox.flow import AnswerEnded
from vendors.sandbox.openai.dialect import (
    AUDIO_MODELS,
    CHAT_MODELS,
    REASONING_MODELS,
    VOICES,
    check_model,
    invalid,
    number,
    one_of,
    read_json,
    required,
)

_FIELDS = frozenset({
    "model", "messages", "stream", "stream_options", "max_completion_tokens", "max_tokens", "temperature",
    "top_p", "stop", "n", "seed", "frequency_penalty", "presence_penalty", "reasoning_effort",
    "response_format", "modalities", "audio", "tools", "tool_choice", "parallel_tool_calls", "logprobs",
    "top_logprobs", "logit_bias", "metadata", "store", "user", "safety_identifier", "prompt_cache_key",
    "service_tier", "verbosity", "prediction", "web_search_options",
})  # fmt: skip
_ROLES: dict[Any, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
}
_OK = 200
_AUDIO_FORMATS = ("wav", "aac", "mp3", "flac", "opus", "pcm16")
_UNCHANGEABLE = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Parameters that reasoning models accept with their default value only."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A valid request. With an `audio_format`, the answer is speech."""

    model: str
    messages: Sequence[ChatMessage]
    max_tokens: int | None
    stream: bool
    include_usage: bool
    include_obfuscation: bool
    audio_format: str | None


async def read_chat_request(call: Call) -> ChatRequest:
    """Read a request. Raise `Refusal` if it is invalid."""
    body = await read_json(call, _FIELDS)
    model = check_model(body.get("model"), CHAT_MODELS)
    messages = [
        _message(index, message) for index, message in enumerate(_check_messages(required(body, "messages")))
    ]
    _check_numbers(body)
    if model in REASONING_MODELS:
        _check_reasoning(body)
    try:
        _check_length(messages, maximum=call.key_options.context_tokens)
        _check_compatible(call.key_options.refuses, body, messages)
    except Refusal:
        if call.key_options.refusal is not None:
            await _refuse_as_scripted(call, call.key_options.refusal)
        raise
    options = _stream_options(body)
    call.record(**{name: value for name, value in body.items() if name != "messages"})
    return ChatRequest(
        model=body["model"],
        messages=messages,
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        stream=body.get("stream") is True,
        include_usage=options.get("include_usage") is True,
        include_obfuscation=options.get("include_obfuscation") is not False,
        audio_format=_audio_format(body, model),
    )


async def _refuse_as_scripted(call: Call, body: str) -> None:
    """Refuse a request in the words of the key."""
    status = call.key_options.refusal_status
    if status == _OK:
        await call.send_scripted(f": processing\n\ndata: {body}\n\n")
        raise AnswerEnded
    raise Refusal(status, body.encode())


def _check_numbers(body: Mapping[str, Any]) -> None:
    number(body, "temperature", minimum=0, maximum=2)
    number(body, "top_p", minimum=0, maximum=1)
    number(body, "frequency_penalty", minimum=-2, maximum=2)
    number(body, "presence_penalty", minimum=-2, maximum=2)
    number(body, "max_completion_tokens", minimum=1)
    number(body, "max_tokens", minimum=1)


def _check_reasoning(body: Mapping[str, Any]) -> None:
    if body.get("max_tokens") is not None:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
        raise invalid(message, param="max_tokens", code="unsupported_parameter")
    for name, default in _UNCHANGEABLE.items():
        if body.get(name, default) not in {default, None}:
            message = (
                f"Unsupported value: '{name}' does not support {body[name]:g} with this model. "
                f"Only the default ({default}) value is supported."
            )
            raise invalid(message, param=name, code="unsupported_value")


def _check_length(messages: Sequence[ChatMessage], *, maximum: int) -> None:
    count = sum(tokens(message.content) for message in messages)
    if count > maximum:
        message = (
            f"This model's maximum context length is {maximum} tokens. "
            f"However, your messages resulted in {count} tokens."
        )
        raise invalid(message, param="messages", code="context_length_exceeded")


def _check_compatible(refuses: str | None, body: Mapping[str, Any], messages: Sequence[ChatMessage]) -> None:
    """Refuse what some servers with this protocol refuse, in the words of vLLM and of chat templates."""
    if refuses == "stream_options" and "stream_options" in body:
        error = {
            "type": "extra_forbidden",
            "loc": ("body", "stream_options"),
            "msg": "Extra inputs are not permitted",
        }
        raise invalid(str([error]), status=422)
    roles = [message.role for message in messages if message.role != "system"]
    if refuses == "repeated_roles" and any(before == after for before, after in pairwise(roles)):
        raise invalid("Conversation roles must alternate user/assistant/user/assistant/...")


def _stream_options(body: Mapping[str, Any]) -> Mapping[str, Any]:
    options = body.get("stream_options")
    if options is None:
        return {}
    if body.get("stream") is not True:
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise invalid(message, param="stream_options")
    if not isinstance(options, dict):
        raise invalid("Invalid type for 'stream_options': expected an object.", param="stream_options")
    return options


def _audio_format(body: Mapping[str, Any], model: str) -> str | None:
    """Return the audio format, or None for an answer in text."""
    wants_audio = "audio" in (body.get("modalities") or ())
    if model in AUDIO_MODELS and not wants_audio and not _has_audio(body["messages"]):
        message = "This model requires that either input content or output modality contain audio."
        raise invalid(message, param="model", code="invalid_value")
    if not wants_audio:
        return None
    if model not in AUDIO_MODELS:
        message = f"Invalid value: 'audio'. The model `{body['model']}` does not support audio output."
        raise invalid(message, param="modalities", code="invalid_value")
    audio = required(body, "audio")
    if not isinstance(audio, dict):
        raise invalid("Invalid type for 'audio': expected an object.", param="audio", code="invalid_type")
    required(audio, "voice")
    one_of(audio, "voice", VOICES, default="alloy")
    audio_format = one_of(audio, "format", _AUDIO_FORMATS, default=str(required(audio, "format")))
    if body.get("stream") is True and audio_format != "pcm16":
        message = (
            f"Unsupported value: 'audio.format' does not support '{audio_format}' when stream=true. "
            "Supported values are: 'pcm16'."
        )
        raise invalid(message, param="audio.format", code="unsupported_value")
    return audio_format


def _has_audio(messages: Any) -> bool:
    contents = [message.get("content") for message in messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return any(isinstance(part, dict) and part.get("type") == "input_audio" for part in parts)


def _check_messages(messages: Any) -> list[Any]:
    if not isinstance(messages, list):
        message = "Invalid type for 'messages': expected an array of objects."
        raise invalid(message, param="messages", code="invalid_type")
    if not messages:
        message = "Invalid 'messages': empty array. Expected an array with minimum length 1."
        raise invalid(message, param="messages", code="empty_array")
    return messages


def _message(index: int, message: Any) -> ChatMessage:
    path = f"messages[{index}]"
    if not isinstance(message, dict):
        raise invalid(f"Invalid type for '{path}': expected an object.", param=path, code="invalid_type")
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        listed = ", ".join(f"'{name}'" for name in _ROLES)
        error = f"Invalid value: '{role}'. Supported values are: {listed}."
        raise invalid(error, param=f"{path}.role", code="invalid_value")
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "".join(parts)
    if content is None and role == "assistant":
        content = ""
    if not isinstance(content, str):
        got = "null" if content is None else "another type"
        error = f"Invalid value for 'content': expected a string, got {got}."
        raise invalid(error, param=f"messages.[{index}].content")
    return ChatMessage(_ROLES[role], content)
