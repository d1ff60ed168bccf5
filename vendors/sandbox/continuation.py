"""The answers of chat models that continue an unfinished answer."""

from collections.abc import Sequence

from vendors.protocols import ChatMessage
from vendors.sandbox.calls import Call
from vendors.sandbox.content import reply


def continuation(call: Call, messages: Sequence[ChatMessage]) -> str:
    """Return the answer to `messages`. If they end with the beginning of an answer, return the rest of it."""
    beginning = messages[-1].content if messages[-1].role == "assistant" else ""
    answer = call.key_options.text
    if answer is None:
        answer = reply(messages[:-1] if beginning else messages)
    return answer.removeprefix(beginning) if answer.startswith(beginning) else f" {answer}"
