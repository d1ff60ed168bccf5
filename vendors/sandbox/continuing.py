"""What sandboxed chat models say that go on from an unfinished answer."""

from collections.abc import Sequence

from vendors.protocols import ChatMessage
from vendors.sandbox.calls import Call
from vendors.sandbox.content import reply


def said(call: Call, messages: Sequence[ChatMessage]) -> str:
    """The answer to `messages`; where they end with the beginning of one, what is still missing of it."""
    begun = messages[-1].content if messages[-1].role == "assistant" else ""
    whole = call.orders.text
    if whole is None:
        whole = reply(messages[:-1] if begun else messages)
    return whole.removeprefix(begun) if whole.startswith(begun) else f" {whole}"
