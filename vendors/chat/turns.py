"""Messages as vendors want them whose instructions stand apart and whose turns alternate. Pure."""

from collections.abc import Sequence

from vendors.protocols import ChatMessage

_BETWEEN = "\n\n"


def instructions(messages: Sequence[ChatMessage]) -> str:
    """What the system messages say; empty where there is none."""
    return _BETWEEN.join(message.content for message in messages if message.role == "system" and _said(message))


def turns(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The user and the assistant in turn, the user first: neighbours of one role are one, blank ones left out."""
    alternating: list[ChatMessage] = []
    for message in messages:
        if message.role == "system" or not _said(message):
            continue
        if alternating and alternating[-1].role == message.role:
            before = alternating.pop()
            alternating.append(ChatMessage(message.role, before.content + _BETWEEN + message.content))
        elif alternating or message.role == "user":
            alternating.append(message)
    return alternating


def _said(message: ChatMessage) -> bool:
    return bool(message.content.strip())
