"""Events of Anthropic's Messages protocol, and calls that read them."""

from typing import Any

from pydantic import SecretStr

from streams.wire.codec import dumps
from tests.vendors.http.upstream import Upstream
from vendors.account import Account, ChatSpec
from vendors.chat.anthropic import AnthropicChat, AnthropicReply
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatItem, ChatMessage, Finish, TextDelta, Usage

USER = [ChatMessage("user", "Grüße")]


def event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), dumps({"type": kind, **fields}))


def text(content: Any) -> bytes:
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": content})


def stopped(reason: Any, *, output_tokens: int = 15) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event("message_delta", delta=delta, usage={"output_tokens": output_tokens})


START = event(
    "message_start", message={"id": "msg_1", "content": [], "usage": {"input_tokens": 25, "output_tokens": 1}}
)
STOP = event("message_stop")


def model(http: VendorHttp, upstream: Upstream, **spec: Any) -> AnthropicChat:
    account = Account("main", "anthropic", upstream.url, SecretStr("k1"))
    return AnthropicChat(http, account, ChatSpec(**{"model": "claude-sonnet-4-5", **spec}))


async def collect(chat: AnthropicChat, messages: list[ChatMessage], into: list[ChatItem]) -> None:
    async with chat.reply(messages) as items:
        async for item in items:
            into.append(item)  # noqa: PERF401 - kept when reading fails, too


async def replied(chat: AnthropicChat, messages: list[ChatMessage] = USER) -> list[ChatItem]:
    items: list[ChatItem] = []
    await collect(chat, messages, items)
    return items


def said(items: list[ChatItem]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))


def read(pieces: list[bytes], **more: Any) -> tuple[str, Usage | None, Finish | None, bool, str]:
    """Return the items of the pieces, and the error that ends them."""
    reply = AnthropicReply("anthropic", **more)
    words = ""
    for piece in pieces:
        words += reply.feed(piece)
        if reply.done or reply.fault:
            break
    return words, reply.usage, reply.finish, reply.done, str(reply.fault or "")
