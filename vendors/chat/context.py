"""How much of a model's context messages take, and replies to messages that turn out to be too long."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager

from vendors.chat.second_try import second_try
from vendors.errors import TooLong, VendorError
from vendors.protocols import ChatItem, ChatMessage, ChatModel


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


def fitting_reply(model: ChatModel, messages: list[ChatMessage]) -> second_try[AsyncIterator[ChatItem]]:
    """Open the reply of a model. If `messages` are too long for it, it is asked once more with half of the history.

    They are those that were sent last.
    """

    def shorter(error: VendorError) -> AbstractAsyncContextManager[AsyncIterator[ChatItem]] | None:
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
    left = sum(context_size(message.content) for message in history) // 2
    kept: list[ChatMessage] = []
    for message in reversed(history):
        left -= context_size(message.content)
        if left < 0:
            break
        kept.append(message)
    return [*head, *reversed(kept), *messages[last:]]
