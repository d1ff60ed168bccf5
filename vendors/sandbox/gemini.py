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
from vendors.sandbox.continuing import said
from vendors.sandbox.google_dialect import dialect, invalid, part, pretty, read_json, refusal
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
    asked = await read_json(call, _FIELDS)
    config = part(asked, "generationConfig")
    messages = _checked(asked, config, model)
    call.asks(model=model, messages=len(messages), prefill=messages[-1].role == "assistant")
    call.charge(input_tokens=sum(tokens(message.content) for message in messages))
    answer = _Reply(call, model, thinks=bool(part(config, "thinkingConfig").get("includeThoughts")))
    whole = words(said(call, messages))
    cut = whole[: config.get("maxOutputTokens")]
    reason = "STOP" if len(cut) == len(whole) else "MAX_TOKENS"
    if method == "generateContent":
        call.charge(output_tokens=len(cut))
        await call.answer(answer.chunk("".join(cut), reason), empty=answer.chunk("", reason))
    elif call.request.query.get("alt") == "sse":
        await _events(call, answer, cut, reason)
    else:
        await _array(call, answer, cut, reason)


class _Reply:
    """The chunks of one answer."""

    def __init__(self, call: Call, model: str, *, thinks: bool) -> None:
        self._call = call
        self._model = model
        self.thinks = thinks

    def chunk(
        self, text: str, reason: str | None = None, *, thought: bool = False, unbilled: int = 0
    ) -> dict[str, Any]:
        """With `unbilled` tokens that are billed once it is out."""
        told = {"text": text, **({"thought": True} if thought else {})}
        content = {"parts": [told], "role": "model"} if text else {"role": "model"}
        candidate = {"content": content, **({"finishReason": reason} if reason else {}), "index": 0}
        return {
            "candidates": [candidate],
            "usageMetadata": self._usage(unbilled),
            "modelVersion": self._model,
            "responseId": f"sandbox{self._call.entry.id}",
        }

    def _usage(self, unbilled: int) -> dict[str, Any]:
        """Totals so far; counts of nothing are left out."""
        asked, spoken = int(self._call.billed["input_tokens"]), int(self._call.billed["output_tokens"]) + unbilled
        thoughts = int(self._call.billed["thought_tokens"])
        counts = {"promptTokenCount": asked, "candidatesTokenCount": spoken, "thoughtsTokenCount": thoughts}
        return {
            **{name: count for name, count in counts.items() if count},
            "totalTokenCount": asked + spoken + thoughts,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": asked}],
        }


async def _events(call: Call, answer: _Reply, spoken: Sequence[str], reason: str) -> None:
    async with call.stream(replace(EVENTS, idle=_event(answer.chunk("")))) as flow:
        if answer.thinks:
            call.charge(thought_tokens=tokens(_THOUGHT))
            await flow.frame(_event(answer.chunk(_THOUGHT, thought=True)))
        for word in spoken:
            await flow.output(_event(answer.chunk(word, unbilled=1)), output_tokens=1)
        await flow.frame(_event(answer.chunk("", reason)))


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + dumps(value) + b"\r\n\r\n"


async def _array(call: Call, answer: _Reply, spoken: Sequence[str], reason: str) -> None:
    """Without `alt=sse`: one array, sent piece by piece."""
    async with call.stream(ARRAY) as flow:
        await flow.frame(b"[")
        for word in spoken:
            await flow.output(dumps(answer.chunk(word, unbilled=1)) + b"\n,\r\n", output_tokens=1)
        await flow.frame(dumps(answer.chunk("", reason)) + b"\n]\n")


def _checked(asked: Mapping[str, Any], config: Mapping[str, Any], model: str) -> list[ChatMessage]:
    """The instructions and the messages, once all is as the vendor wants it."""
    if not 0 <= config.get("temperature", 0) <= 2:
        raise invalid("Unable to submit request because it has a temperature value which is out of range [0, 2].")
    if config.get("maxOutputTokens", 1) < 1:
        raise invalid("Unable to submit request because it has a maxOutputTokens value which is not positive.")
    if not asked.get("contents"):
        raise invalid("* GenerateContentRequest.contents: contents is not specified")
    messages = [_turn(number, content) for number, content in enumerate(asked["contents"])]
    for before, after in pairwise(messages):
        if before.role == after.role:
            raise invalid("Please ensure that multiturn requests alternate between user and model.")
    if messages[-1].role == "assistant" and not _PREFILLED.match(model):
        raise invalid("Requests ending with a model turn are not supported.")
    system = _plain(part(asked, "systemInstruction").get("parts") or [])
    return [*([ChatMessage("system", system)] if system else []), *messages]


def _turn(number: int, content: Any) -> ChatMessage:
    role = content.get("role", "user") if isinstance(content, dict) else None
    if role not in {"user", "model"}:
        raise invalid("Please use a valid role: user, model.")
    text = _plain(content.get("parts") or [])
    if not text:
        raise invalid(f"* GenerateContentRequest.contents[{number}].parts: contents.parts must not be empty.")
    return ChatMessage("assistant" if role == "model" else "user", text)


def _plain(parts: Any) -> str:
    return "".join(str(one.get("text", "")) for one in parts if isinstance(one, dict))
