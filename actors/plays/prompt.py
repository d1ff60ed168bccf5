"""Build the language model's input: the system prompt, the history that fits, and the user's message."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Literal

from storage.conversations.conversations import Record
from streams.wire.codec import loads
from streams.wire.template import render
from vendors.errors import TooLong
from vendors.protocols import ChatItem, ChatMessage, ChatModel

_ROLES: tuple[Literal["user", "assistant"], ...] = ("user", "assistant")


def build(
    system_prompt: str,
    params: Mapping[str, Any],
    history: Iterable[Record],
    user_text: str,
    *,
    context_tokens: int,
) -> list[ChatMessage]:
    """Return the messages for the language model.

    `history` is ordered newest first. Complete records are added until the estimated size reaches `context_tokens`.
    """
    system = render(system_prompt, params)
    remaining = context_tokens - context_size(system) - context_size(user_text)
    past: list[list[ChatMessage]] = []
    for record in history:
        messages = _messages(record)
        remaining -= sum(context_size(message.content) for message in messages)
        if remaining < 0:
            break
        past.append(messages)
    head = [ChatMessage("system", system)] if system else []
    return [*head, *(m for messages in reversed(past) for m in messages), ChatMessage("user", user_text)]


def context_size(text: str) -> int:
    """Estimate how many tokens of a model's context a text takes, by the length of its characters in UTF-8.

    That tells scripts apart: a token has four ASCII characters, but Chinese, Japanese and Korean take up to one and
    a half tokens for each of theirs. Measured with cl100k_base, o200k_base, and the tokenizers of Claude 2 and
    DeepSeek.
    """
    if text.isascii():
        return -(-len(text) // 4)
    ascii_count = len(text.encode("ascii", "ignore"))
    beyond_bmp = len(text.encode("utf-16-le")) // 2 - len(text)
    other = len(text) - ascii_count - beyond_bmp
    three_bytes = len(text.encode()) - ascii_count - 4 * beyond_bmp - 2 * other
    two_bytes = other - three_bytes
    return -(-(ascii_count + 3 * two_bytes + 6 * three_bytes + 10 * beyond_bmp) // 4)


@asynccontextmanager
async def fitting_reply(model: ChatModel, messages: list[ChatMessage]) -> AsyncIterator[AsyncIterator[ChatItem]]:
    """Open the reply of a model. If `messages` are too long for it, it is asked once more with half of the history.

    They are those that were sent last.
    """
    async with AsyncExitStack() as stack:
        try:
            items = await stack.enter_async_context(model.reply(messages))
        except TooLong:
            shorter = _shortened(messages)
            if len(shorter) == len(messages):
                raise
            messages[:] = shorter
            items = await stack.enter_async_context(model.reply(messages))
        yield items


def _shortened(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with the newer half of their history, by its size. The last one of the user is kept."""
    last = max(index for index, message in enumerate(messages) if message.role == "user")
    head = [message for message in messages[:last] if message.role == "system"]
    history = [message for message in messages[:last] if message.role != "system"]
    left = sum(context_size(message.content) for message in history) // 2
    kept: list[ChatMessage] = []
    for message in reversed(history):
        left -= context_size(message.content)
        if left < 0:
            break
        kept.append(message)
    return [*head, *reversed(kept), *messages[last:]]


def _messages(record: Record) -> list[ChatMessage]:
    if record.status in {"failed", "running"}:
        return []
    messages, content = [], loads(record.content)
    for role in _ROLES:
        text = "".join(_texts(m["content"]) for m in content if m["role"] == role)
        if text:
            messages.append(ChatMessage(role, text))
    return messages


def _texts(items: Sequence[Mapping[str, Any]]) -> str:
    return "".join(item["text"] + item.get("delimiter", "") for item in items if item["type"] == "text").rstrip()
