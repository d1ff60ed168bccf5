"""Frames of chat completions, and their client."""

from typing import Any

from pydantic import SecretStr

from streams.wire.codec import dumps
from tests.vendors.http.upstream import Upstream
from vendors.account import Account, ChatSpec
from vendors.chat.openai import OpenAIChat
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatItem, ChatMessage, TextDelta

MESSAGES = [ChatMessage("system", "Be brief."), ChatMessage("user", "Grüße")]


DONE = b"data: [DONE]\n\n"


def event(**chunk: Any) -> bytes:
    return b"data: %b\n\n" % dumps(chunk)


def text(content: Any, **more: Any) -> bytes:
    return event(choices=[{"index": 0, "delta": {"content": content}, "finish_reason": None}], usage=None, **more)


def finish(reason: Any = "stop") -> bytes:
    return event(choices=[{"index": 0, "delta": {}, "finish_reason": reason}])


USAGE = event(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11})


def model(http: VendorHttp, upstream: Upstream, *, key: str | None = "k1", **spec: Any) -> OpenAIChat:
    account = Account("main", "vendor_b_llm", upstream.url, SecretStr(key) if key is not None else None)
    return OpenAIChat(http, account, ChatSpec(**{"model": "m1", **spec}))


ROLE = event(choices=[{"index": 0, "delta": {"role": "assistant", "content": "", "refusal": None}}])


async def collect(chat: OpenAIChat, into: list[ChatItem]) -> None:
    async with chat.reply(MESSAGES) as items:
        async for item in items:
            into.append(item)  # noqa: PERF401 - kept when reading fails, too


def said(items: list[ChatItem]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))
