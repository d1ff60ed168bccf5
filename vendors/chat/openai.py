"""Chat completions of OpenAI's protocol: OpenAI, vLLM, Ollama, llama.cpp, the engines of this machine."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from pydantic import Field

from streams.wire.codec import dumps, loads
from streams.wire.model import Model
from vendors.account import Account, ChatSpec
from vendors.errors import Garbled, Refused, VendorError
from vendors.protocols import ChatItem, ChatMessage, Finish, TextDelta, Usage
from vendors.sse import SseParser
from vendors.transport import Incoming, Outgoing, VendorHttp

_REASONS: dict[str, Literal["stop", "length", "content_filter"]] = {
    "length": "length",
    "content_filter": "content_filter",
}


class Options(Model):
    """What of a strategy goes to the vendor as it stands."""

    token_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"  # noqa: S105 - a field's name
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request, such as `top_p` or `reasoning_effort`."""


class OpenAIChat:
    """One model of one account."""

    Options = Options

    def __init__(self, http: VendorHttp, account: Account, spec: ChatSpec) -> None:
        options = Options.of(spec.options)
        self._http = http
        self._account = account
        self._connect_s = spec.connect_s
        fields: dict[str, Any] = {
            "model": spec.model,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if spec.max_tokens is not None:
            fields[options.token_field] = spec.max_tokens
        if spec.temperature is not None:
            fields["temperature"] = spec.temperature
        # all of the request but its messages is made once, when the strategy is
        self._request_head = dumps({**fields, **options.extra})[:-1] + b',"messages":'
        self._headers = {
            **account.bearer(),
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
        }
        self._url = account.url("/chat/completions")

    @asynccontextmanager
    async def reply(self, messages: Sequence[ChatMessage]) -> AsyncIterator[AsyncIterator[ChatItem]]:
        """Stream the reply. Ends well only by `[DONE]` or a finish reason; anything else is an error."""
        body = self._request_head + dumps([_message(message) for message in messages]) + b"}"
        call = Outgoing(
            self._account.platform, self._url, headers=self._headers, body=body, connect_s=self._connect_s
        )
        async with self._http.stream(call) as answer:
            if answer.content_type != "text/event-stream":
                raise Garbled(answer.vendor, f"answered with {answer.content_type}, not an event stream")
            yield _items(answer)


def _message(message: ChatMessage) -> dict[str, str]:
    return {"role": message.role, "content": message.content}


async def _items(answer: Incoming) -> AsyncIterator[ChatItem]:
    parser = SseParser()
    reason: str | None = None
    usage: Usage | None = None
    done = False
    async for piece in answer.pieces():
        text, fault = "", None
        try:
            for event in parser.feed(piece):
                if event.data == b"[DONE]":
                    done = True
                    continue
                chunk = loads(event.data)
                delta, why = _read(answer.vendor, chunk)
                text += delta
                reason = why or reason
                usage = _usage(chunk) or usage
        except VendorError as error:
            fault = error
        except ValueError:
            fault = Garbled(answer.vendor, "sent an event that is no JSON")
        if text:
            yield TextDelta(text)
        if fault is not None:
            raise fault
    if not done and reason is None:
        raise Garbled(answer.vendor, "ended its stream without its end mark", retryable=True)
    if usage is not None:
        yield usage
    yield Finish(_REASONS.get(reason or "", "stop"))


def _read(vendor: str, chunk: Any) -> tuple[str, str | None]:
    """Text and finish reason of a chunk; it may hold no choice at all."""
    if not isinstance(chunk, dict):
        raise Garbled(vendor, "sent an event that is no object")
    if error := chunk.get("error"):
        told = error.get("message", "") if isinstance(error, dict) else error
        raise Refused(vendor, f"broke off with an error: {str(told)[:200]}", retryable=True)
    text, reason = "", None
    try:
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            text += delta.get("content") or delta.get("refusal") or ""
            reason = choice.get("finish_reason") or reason
    except (AttributeError, TypeError):
        raise Garbled(vendor, "sent an event of an unknown form") from None
    return text, reason


def _usage(chunk: dict[str, Any]) -> Usage | None:
    usage = chunk.get("usage")
    if not isinstance(usage, dict):
        return None
    sent, received = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(sent, int) or not isinstance(received, int):
        return None
    return Usage(sent, received)
