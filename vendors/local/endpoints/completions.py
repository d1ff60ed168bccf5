"""`POST /v1/chat/completions`: a language model's reply, complete or as a stream of chunks."""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from streams.wire.codec import dumps
from streams.wire.ids import new_id
from streams.wire.model import Model
from vendors.local.endpoints.event_stream import DONE, EVENT_STREAM, event, send
from vendors.local.engines.engines import Engines
from vendors.local.engines.faults import model_not_found, read_body
from vendors.local.engines.protocols import ChatOptions
from vendors.protocols import ChatItem, ChatMessage, Finish, Role, TextDelta, Usage


class _TextPart(Model):
    type: Literal["text"]
    text: str


class _Message(Model):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_TextPart] | None = None

    def plain(self) -> ChatMessage:
        role: Role = "system" if self.role == "developer" else self.role
        if isinstance(self.content, list):
            return ChatMessage(role, "".join(part.text for part in self.content))
        return ChatMessage(role, self.content or "")


class _StreamOptions(Model):
    include_usage: bool = False


class _CompletionRequest(Model):
    model: str
    messages: list[_Message] = Field(min_length=1)
    stream: bool = False
    stream_options: _StreamOptions | None = None
    max_completion_tokens: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    pace_ms: int | None = Field(default=None, ge=0, le=10_000)
    """For the scripted model: the time between two words."""

    def named_pace(self) -> tuple[str, int | None]:
        """Return the model's name, and the pace in a name such as `scripted:0`."""
        name, colon, pace = self.model.partition(":")
        if not colon:
            return name, None
        if name != "scripted" or not (pace.isascii() and pace.isdigit() and len(pace) < 5):
            raise model_not_found(self.model)
        return name, int(pace)


async def complete(engines: Engines, request: web.Request) -> web.StreamResponse:
    spec = read_body(_CompletionRequest, await request.read())
    name, pace_ms = spec.named_pace()
    options = ChatOptions(
        max_tokens=spec.max_completion_tokens or spec.max_tokens,
        temperature=spec.temperature,
        pace_ms=pace_ms if spec.pace_ms is None else spec.pace_ms,
    )
    messages = [message.plain() for message in spec.messages]
    async with engines.chat(name).reply(messages, options) as items:
        if spec.stream:
            include_usage = spec.stream_options is not None and spec.stream_options.include_usage
            chunks = _chunks(items, _head("chat.completion.chunk", spec.model), include_usage=include_usage)
            return await send(request, chunks, {"Content-Type": EVENT_STREAM})
        completion = await _completion(items, _head("chat.completion", spec.model))
        return web.Response(body=dumps(completion), content_type="application/json")


async def _chunks(
    items: AsyncIterator[ChatItem], head: dict[str, Any], *, include_usage: bool
) -> AsyncGenerator[bytes, None]:
    if include_usage:
        head["usage"] = None
    begin = _chunk(head, {"role": "assistant", "content": "", "refusal": None})
    async for item in items:
        piece, begin = begin, b""
        if isinstance(item, TextDelta) and item.text:
            piece += _chunk(head, {"content": item.text})
        elif isinstance(item, Finish):
            piece += _chunk(head, {}, item.reason)
        elif isinstance(item, Usage) and include_usage:
            piece += event(head | {"choices": [], "usage": _usage(item)})
        if piece:
            yield piece
    yield DONE


def _chunk(head: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return event(head | {"choices": [choice]})


async def _completion(items: AsyncIterator[ChatItem], head: dict[str, Any]) -> dict[str, Any]:
    text: list[str] = []
    finish, usage = Finish("stop"), Usage(0, 0)
    async for item in items:
        if isinstance(item, TextDelta):
            text.append(item.text)
        elif isinstance(item, Finish):
            finish = item
        elif isinstance(item, Usage):
            usage = item
    message: dict[str, Any] = {"role": "assistant", "content": "".join(text), "refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish.reason}
    return head | {"choices": [choice], "usage": _usage(usage)}


def _head(kind: str, model: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{new_id()}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
        "system_fingerprint": "parley-local",
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_token,
        "completion_tokens": usage.output_token,
        "total_tokens": usage.input_token + usage.output_token,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
