"""Anthropic's `POST /v1/messages`."""

import re
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps, loads
from vendors.protocols import ChatMessage
from vendors.sandbox.calls import Call, Dialect, Framing, Refusal
from vendors.sandbox.content import tokens, words
from vendors.sandbox.continuation import continuation
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.sandbox import Sandbox

_FIELDS = frozenset({
    "model", "max_tokens", "messages", "system", "stream", "temperature", "top_p", "top_k", "stop_sequences",
    "metadata", "thinking", "tools", "tool_choice", "service_tier", "cache_control", "container",
    "context_management", "output_config", "inference_geo", "speed",
})  # fmt: skip
_VERSIONS: dict[str, set[str]] = {"2023-06-01": set(), "2026-10-21": {"temperature", "top_p", "top_k"}}
"""The API versions, with the fields that each one has removed."""
_MAX_BODY_BYTES = 32 * 1024 * 1024
_PREFILLED = re.compile(r"claude-(3-|(opus|sonnet|haiku)-4-([015](-\d{8})?|\d{8})$)")
_BAD = "invalid_request_error"


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    return [sandbox.post("/anthropic/v1/messages", ANTHROPIC, "llm", _message)]


def _refusal(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Refusal:
    error = {"type": kind, "message": message}
    return Refusal(status, {"type": "error", "error": error, "request_id": f"req_{token_hex(12)}"}, headers)


def _invalid(message: str) -> Refusal:
    return _refusal(400, _BAD, message)


def _key(request: web.Request) -> str:
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return request.headers.get("x-api-key") or bearer


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    match fault:
        case Fault.UNAUTHORIZED:
            return _refusal(401, "authentication_error", "invalid x-api-key")
        case Fault.RATE_LIMITED:
            message = "This request would exceed your organization's rate limit."
            return _refusal(429, "rate_limit_error", message, {"retry-after": f"{key_options.retry_after_s:g}"})
        case Fault.OUT_OF_QUOTA:
            return _refusal(402, "billing_error", "Your credit balance is too low to access the Anthropic API.")
        case Fault.UNAVAILABLE:
            return _refusal(529, "overloaded_error", "Overloaded")
        case _:
            return _refusal(500, "api_error", "Internal server error")


def _headers(request: web.Request) -> Mapping[str, str]:
    return {
        "request-id": f"req_{token_hex(12)}",
        "anthropic-organization-id": "sandbox",
        "anthropic-ratelimit-requests-limit": "4000",
        "anthropic-ratelimit-requests-remaining": "3999",
        "anthropic-ratelimit-requests-reset": "2030-01-01T00:00:00Z",
    }


ANTHROPIC = Dialect("anthropic", _key, _refuse, _headers)


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), dumps({"type": kind, **fields}))


EVENTS = Framing(
    "text/event-stream; charset=utf-8",
    error=_event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
    malformed=b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"del\n\n',
    idle=_event("ping"),
)


async def _message(call: Call) -> None:
    body = await _read_body(call)
    messages = _check_body(body)
    _check_length(call, messages)
    call.record(model=body["model"], messages=len(messages), prefill=messages[-1].role == "assistant")
    call.charge(input_tokens=sum(tokens(message.content) for message in messages))
    all_words = words(continuation(call, messages))
    answer_words = all_words[: body["max_tokens"]]
    reason = "end_turn" if len(answer_words) == len(all_words) else "max_tokens"
    if body.get("stream") and call.key_options.events is not None:
        await call.send_scripted(call.key_options.events)
        return
    if body.get("stream"):
        await _stream(call, body["model"], answer_words, reason)
        return
    call.charge(output_tokens=len(answer_words))
    await call.answer(
        _complete_message(call, body["model"], "".join(answer_words), reason),
        empty=_complete_message(call, body["model"], "", reason),
    )


async def _stream(call: Call, model: str, answer_words: Sequence[str], reason: str) -> None:
    async with call.stream(EVENTS) as flow:
        begun = _head(call, model) | {"content": [], "stop_reason": None, "stop_sequence": None}
        await flow.frame(_event("message_start", message={**begun, "usage": _usage(call, output_tokens=1)}))
        await flow.frame(_event("content_block_start", index=0, content_block={"type": "text", "text": ""}))
        await flow.frame(_event("ping"))
        for word in answer_words:
            delta = {"type": "text_delta", "text": word}
            await flow.output(_event("content_block_delta", index=0, delta=delta), output_tokens=1)
        await flow.frame(_event("content_block_stop", index=0))
        usage = {"output_tokens": int(call.billed["output_tokens"])}
        stop = {"stop_reason": reason, "stop_sequence": None}
        await flow.frame(_event("message_delta", delta=stop, usage=usage))
        await flow.frame(_event("message_stop"))


def _complete_message(call: Call, model: str, text: str, reason: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text else []
    usage = _usage(call, output_tokens=tokens(text))
    return _head(call, model) | {"content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def _head(call: Call, model: str) -> dict[str, Any]:
    return {"id": f"msg_{call.entry.id:024}", "type": "message", "role": "assistant", "model": model}


def _usage(call: Call, *, output_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": int(call.billed["input_tokens"]),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


async def _read_body(call: Call) -> dict[str, Any]:
    version = call.request.headers.get("anthropic-version")
    if version not in _VERSIONS:
        raise _invalid("anthropic-version: header is required")
    raw = await call.request.read()
    if len(raw) > _MAX_BODY_BYTES:
        raise _refusal(413, "request_too_large", "Request exceeds the maximum size")
    try:
        body = loads(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise _invalid("The request body is not valid JSON")
    for name in body.keys() - _FIELDS | body.keys() & _VERSIONS[version]:
        raise _invalid(f"{name}: Extra inputs are not permitted")
    return body


def _check_body(body: Mapping[str, Any]) -> list[ChatMessage]:
    """Validate the body, and return its instructions and messages."""
    for name in ("model", "max_tokens", "messages"):
        if body.get(name) is None:
            raise _invalid(f"{name}: Field required")
    if not str(body["model"]).startswith("claude-"):
        raise _refusal(404, "not_found_error", f"model: {body['model']}")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise _invalid("max_tokens: Input should be greater than or equal to 1")
    if not 0 <= body.get("temperature", 0) <= 1:
        raise _invalid("temperature: range: 0..1")
    if not body["messages"]:
        raise _invalid("messages: at least one message is required")
    messages = [_turn(f"messages.{number}", message) for number, message in enumerate(body["messages"])]
    if messages[0].role != "user":
        raise _invalid('messages: first message must use the "user" role')
    last = messages[-1]
    if last.role == "assistant" and not _PREFILLED.match(body["model"]):
        message = (
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
        raise _invalid(message)
    if last.role == "assistant" and last.content != last.content.rstrip():
        raise _invalid("messages: final assistant content cannot end with trailing whitespace")
    system = body.get("system")
    return [*([ChatMessage("system", _text_of("system", system))] if system else []), *messages]


def _check_length(call: Call, messages: Sequence[ChatMessage]) -> None:
    count, maximum = sum(tokens(message.content) for message in messages), call.key_options.context_tokens
    if count > maximum:
        raise _invalid(f"prompt is too long: {count} tokens > {maximum} maximum")


def _turn(path: str, message: Any) -> ChatMessage:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in {"user", "assistant"}:
        raise _invalid(
            f'messages: Unexpected role "{role}". The Messages API accepts a top-level `system` parameter.'
        )
    return ChatMessage(role, _text_of(path, message.get("content")))


def _text_of(path: str, content: Any) -> str:
    """Return the text of a string or of content blocks."""
    if isinstance(content, list):
        content = "".join(str(block.get("text", "")) for block in content)
    if not isinstance(content, str):
        raise _invalid(f"{path}.content: Input should be a valid string")
    if not content.strip():
        raise _invalid(f"{path}: text content blocks must contain non-whitespace text")
    return content
