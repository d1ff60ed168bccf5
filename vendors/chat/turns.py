"""Converts messages for vendors that separate the instructions and require alternating roles. Does no I/O."""

from collections.abc import Sequence

from vendors.protocols import ChatMessage

_SEPARATOR = "\n\n"


def instructions(messages: Sequence[ChatMessage]) -> str:
    """Return the text of all system messages, or an empty string."""
    return _SEPARATOR.join(
        message.content for message in messages if message.role == "system" and _has_text(message)
    )


def turns(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return alternating messages that start with the user.

    Consecutive messages of one role are joined. Blank messages, and assistant messages before the first user
    message, are left out.
    """
    alternating: list[ChatMessage] = []
    for message in messages:
        if message.role == "system" or not _has_text(message):
            continue
        if alternating and alternating[-1].role == message.role:
            previous = alternating.pop()
            alternating.append(ChatMessage(message.role, previous.content + _SEPARATOR + message.content))
        elif alternating or message.role == "user":
            alternating.append(message)
    return alternating


def unfinished(messages: Sequence[ChatMessage]) -> str:
    """Return the text of the final assistant message, which the reply continues, or an empty string."""
    last = messages[-1] if messages else None
    return last.content if last is not None and last.role == "assistant" and _has_text(last) else ""


def _has_text(message: ChatMessage) -> bool:
    return bool(message.content.strip())
