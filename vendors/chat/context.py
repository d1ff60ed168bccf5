"""Replies to messages that turn out to be too long for a model."""

from collections.abc import Sequence

from vendors.calls.meter import estimated_tokens
from vendors.chat.second_try import Opened, second_try
from vendors.errors import TooLong, VendorError
from vendors.protocols import ChatMessage, ChatModel


def fitting_reply(model: ChatModel, messages: list[ChatMessage]) -> second_try:
    """Open the reply of a model. If `messages` are too long for it, it is asked once more with half of the history.

    They are those that were sent last.
    """

    def shorter(error: VendorError) -> Opened | None:
        if not isinstance(error, TooLong) or len(kept := _shortened(messages)) == len(messages):
            return None
        messages[:] = kept
        return model.reply(messages)

    return second_try(model.reply(messages), shorter)


def _shortened(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with the newer half of their history, by its size. The last one of the user is kept."""
    last = max(index for index, message in enumerate(messages) if message.role == "user")
    head = [message for message in messages[:last] if message.role == "system"]
    history = [message for message in messages[:last] if message.role != "system"]
    left = sum(estimated_tokens(message.content) for message in history) // 2
    kept: list[ChatMessage] = []
    for message in reversed(history):
        left -= estimated_tokens(message.content)
        if left < 0:
            break
        kept.append(message)
    return [*head, *reversed(kept), *messages[last:]]
