"""Build the language model's input: the system prompt, the history that fits, and the user's message."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from storage.conversations.conversations import Record
from streams.wire.codec import loads
from streams.wire.template import render
from vendors.calls.meter import estimated_tokens
from vendors.protocols import ChatMessage

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
    remaining = context_tokens - estimated_tokens(system) - estimated_tokens(user_text)
    past: list[list[ChatMessage]] = []
    for record in history:
        messages = _messages(record)
        remaining -= sum(estimated_tokens(message.content) for message in messages)
        if remaining < 0:
            break
        past.append(messages)
    head = [ChatMessage("system", system)] if system else []
    return [*head, *(m for messages in reversed(past) for m in messages), ChatMessage("user", user_text)]


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
