"""Gemini's `generateContent` and `streamGenerateContent`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps
from vendors.protocols import ChatMessage
from vendors.sandbox.calls import Call, Framing
from vendors.sandbox.content import tokens, words
from vendors.sandbox.continuation import continuation
from vendors.sandbox.google.dialect import dialect, invalid, part, pretty, read_json, refusal
from vendors.sandbox.sandbox import Sandbox

GEMINI = dialect("gemini")

_FIELDS = frozenset({
    "contents", "systemInstruction", "generationConfig", "safetySettings", "tools", "toolConfig",
    "cachedContent", "labels", "model",
})  # fmt: skip
_PREFILLED = re.compile(r"gemini-(2\.|3-|3\.1-)")
_THOUGHT = "**Thinking it over**\n\n"
_OVERLOADED = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}

EVENTS = Framing(
    "text/event-stream", error=pretty(_OVERLOADED), malformed=b'data: {"candidates": [{"content": {"par\r\n\r\n'
)
ARRAY = Framing("application/json; charset=UTF-8")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    return [sandbox.post("/gemini/{version:v1|v1beta}/models/{method}", GEMINI, "llm", _generate)]


async def _generate(call: Call) -> None:
    model, _, method = call.request.match_info["method"].rpartition(":")
    if method not in {"generateContent", "streamGenerateContent"} or not model.startswith("gemini-"):
        message = f"models/{model} is not found for API version v1beta, or is not supported for {method}."
        raise refusal(404, "NOT_FOUND", message)
    body = await read_json(call, _FIELDS)
    config = part(body, "generationConfig")
    messages = _check_body(body, config, model)
    _check_length(call, messages)
    call.record(model=model, messages=len(messages), prefill=messages[-1].role == "assistant")
    call.charge(input_tokens=sum(tokens(message.content) for message in messages))
    reply = _Reply(call, model, thinks=bool(part(config, "thinkingConfig").get("includeThoughts")))
    all_words = words(continuation(call, messages))
    answer_words = all_words[: config.get("maxOutputTokens")]
    reason = "STOP" if len(answer_words) == len(all_words) else "MAX_TOKENS"
    if method == "generateContent":
        call.charge(output_tokens=len(answer_words))
        await call.answer(reply.chunk("".join(answer_words), reason), empty=reply.chunk("", reason))
    elif call.key_options.events is not None:
        await call.send_scripted(call.key_options.events)
    elif call.request.query.get("alt") == "sse":
        await _events(call, reply, answer_words, reason)
    else:
        await _array(call, reply, answer_words, reason)


class _Reply:
    """The chunks of one answer."""

    def __init__(self, call: Call, model: str, *, thinks: bool) -> None:
        self._call = call
        self._model = model
        self.thinks = thinks

    def chunk(
        self, text: str, reason: str | None = None, *, thought: bool = False, unbilled: int = 0
    ) -> dict[str, Any]:
        """Return a chunk. `unbilled` is the number of its tokens, which are added to the bill after it was sent."""
        text_part = {"text": text, **({"thought": True} if thought else {})}
        content = {"parts": [text_part], "role": "model"} if text else {"role": "model"}
        candidate = {"content": content, **({"finishReason": reason} if reason else {}), "index": 0}
        return {
            "candidates": [candidate],
            "usageMetadata": self._usage(unbilled),
            "modelVersion": self._model,
            "responseId": f"sandbox{self._call.entry.id}",
        }

    def _usage(self, unbilled: int) -> dict[str, Any]:
        """Return the totals so far, without zero counts."""
        prompt = int(self._call.billed["input_tokens"])
        output = int(self._call.billed["output_tokens"]) + unbilled
        thoughts = int(self._call.billed["thought_tokens"])
        counts = {"promptTokenCount": prompt, "candidatesTokenCount": output, "thoughtsTokenCount": thoughts}
        return {
            **{name: count for name, count in counts.items() if count},
            "totalTokenCount": prompt + output + thoughts,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
        }


async def _events(call: Call, reply: _Reply, answer_words: Sequence[str], reason: str) -> None:
    async with call.stream(replace(EVENTS, idle=_event(reply.chunk("")))) as flow:
        if reply.thinks:
            call.charge(thought_tokens=tokens(_THOUGHT))
            await flow.frame(_event(reply.chunk(_THOUGHT, thought=True)))
        for word in answer_words:
            await flow.output(_event(reply.chunk(word, unbilled=1)), output_tokens=1)
        await flow.frame(_event(reply.chunk("", reason)))


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + dumps(value) + b"\r\n\r\n"


async def _array(call: Call, reply: _Reply, answer_words: Sequence[str], reason: str) -> None:
    """Stream the answer without `alt=sse`: a JSON array that is sent piece by piece."""
    async with call.stream(ARRAY) as flow:
        await flow.frame(b"[")
        for word in answer_words:
            await flow.output(dumps(reply.chunk(word, unbilled=1)) + b"\n,\r\n", output_tokens=1)
        await flow.frame(dumps(reply.chunk("", reason)) + b"\n]\n")


def _check_body(body: Mapping[str, Any], config: Mapping[str, Any], model: str) -> list[ChatMessage]:
    """Validate the body, and return its instructions and messages."""
    if not 0 <= config.get("temperature", 0) <= 2:
        raise invalid("Unable to submit request because it has a temperature value which is out of range [0, 2].")
    if config.get("maxOutputTokens", 1) < 1:
        raise invalid("Unable to submit request because it has a maxOutputTokens value which is not positive.")
    if not body.get("contents"):
        raise invalid("* GenerateContentRequest.contents: contents is not specified")
    messages = [_turn(number, content) for number, content in enumerate(body["contents"])]
    for before, after in pairwise(messages):
        if before.role == after.role:
            raise invalid("Please ensure that multiturn requests alternate between user and model.")
    if messages[-1].role == "assistant" and not _PREFILLED.match(model):
        raise invalid("Requests ending with a model turn are not supported.")
    system = _text_of(part(body, "systemInstruction").get("parts") or [])
    return [*([ChatMessage("system", system)] if system else []), *messages]


def _check_length(call: Call, messages: Sequence[ChatMessage]) -> None:
    count, maximum = sum(tokens(message.content) for message in messages), call.key_options.context_tokens
    if count > maximum:
        message = f"The input token count ({count}) exceeds the maximum number of tokens allowed ({maximum})."
        raise invalid(message)


def _turn(number: int, content: Any) -> ChatMessage:
    role = content.get("role", "user") if isinstance(content, dict) else None
    if role not in {"user", "model"}:
        raise invalid("Please use a valid role: user, model.")
    text = _text_of(content.get("parts") or [])
    if not text:
        raise invalid(f"* GenerateContentRequest.contents[{number}].parts: contents.parts must not be empty.")
    return ChatMessage("assistant" if role == "model" else "user", text)


def _text_of(parts: Any) -> str:
    return "".join(str(item.get("text", "")) for item in parts if isinstance(item, dict))
