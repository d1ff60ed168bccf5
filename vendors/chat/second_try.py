"""Opens a reply, or another one if it is refused before its first output, such as for a field of its request."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar

from streams.push import PushSource, Sink, drain_into
from vendors.account import Account
from vendors.calls.meter import estimated_tokens
from vendors.errors import Refused, TooLong, VendorError
from vendors.protocols import AudioBytes, ChatItem, ChatMessage, ChatModel, TextDelta

Item = TypeVar("Item")
Opened = AbstractAsyncContextManager[AsyncIterator[Item]]
_FIELD = "stream_options"
"""The request field that asks for the usage in OpenAI's protocol, and that some servers refuse."""
_Fields = Mapping[str, Any]
_NO_FIELDS: _Fields = {}
USAGE_OPTIONS: _Fields = {_FIELD: {"include_usage": True}}
_NAMES_FIELD = re.compile(rb"stream_?options|include_usage", re.IGNORECASE)
_UNKNOWN_FIELD = re.compile(
    rb"(?:extra|additional|unknown|unexpected|unrecogni[sz]ed|unsupported) (?:\w+ )?"
    rb"(?:input|field|propert|param|arg|key)|not permitted",
    re.IGNORECASE,
)
"""How servers refuse a field without its name."""
_INVALID = frozenset({400, 422})
_REFUSING = _INVALID | {404, 500, 501}


class second_try(PushSource[Item]):  # noqa: N801 - used like a function
    """A context manager that opens `first` or, if the vendor refuses that, what `second` returns for the error.

    It is cheaper than a generator. Some vendors refuse within a response of status 200. If `second` returns `None`,
    the error is raised. `on_success` is called at the first item of the second reply.
    """

    __slots__ = ("_entered", "_has_begun", "_is_second", "_items", "_on_success", "_second")

    def __init__(
        self,
        first: Opened[Item],
        second: Callable[[VendorError], Opened[Item] | None],
        on_success: Callable[[], None] | None = None,
    ) -> None:
        self._entered: Opened[Item] | None = first
        self._second = second
        self._on_success = on_success
        self._is_second = False
        self._has_begun = False
        """Whether there was any text or audio."""

    async def __aenter__(self) -> AsyncIterator[Item]:
        assert self._entered is not None, "entered once"
        try:
            self._items = await self._entered.__aenter__()
        except VendorError as error:
            if (again := self._second(error)) is None:
                raise
        else:
            return self
        await self._enter_second(again)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entered, self._entered = self._entered, None
        if entered is not None:
            await entered.__aexit__(kind, error, trace)

    async def __anext__(self) -> Item:
        if self._has_begun:
            return await anext(self._items)
        try:
            item = await anext(self._items)
        except VendorError as error:
            if self._is_second or (again := self._second(error)) is None:
                raise
        else:
            return self._noted(item)
        await self.__aexit__(None, None, None)
        await self._enter_second(again)
        return self._noted(await anext(self._items))

    async def push_to(self, sink: Sink[Item]) -> bool:
        while not self._has_begun:
            try:
                item = await anext(self)
            except StopAsyncIteration:
                return False
            if not sink(item):
                return True
        return await drain_into(self._items, sink)

    async def _enter_second(self, second: Opened[Item]) -> None:
        self._is_second, self._entered = True, None
        self._items = await second.__aenter__()
        self._entered = second

    def _noted(self, item: Item) -> Item:
        self._has_begun = isinstance(item, TextDelta | AudioBytes)
        if self._is_second and self._on_success is not None:
            self._on_success()
            self._on_success = None
        return item


def fitting_reply(model: ChatModel, messages: list[ChatMessage]) -> second_try[ChatItem]:
    """Open the reply of a model. If `messages` are too long for it, it is asked once more with half of the history.

    They are those that were sent last.
    """

    def shorter(error: VendorError) -> Opened[ChatItem] | None:
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


def with_usage(account: Account, opened: Callable[[_Fields], Opened[Item]]) -> Opened[Item]:
    """Open a stream with `opened`, which gets the fields that ask for the usage, or none.

    A server that refuses this is asked again without it, and if that works, in all later calls of the account, too.
    """
    if not account.stream_options or _FIELD in account.refused:
        return opened(_NO_FIELDS)

    def without_usage(error: VendorError) -> Opened[Item] | None:
        return opened(_NO_FIELDS) if _refuses_usage(error) else None

    def remember() -> None:
        account.refused.add(_FIELD)

    return second_try(opened(USAGE_OPTIONS), without_usage, remember)


def _refuses_usage(error: VendorError) -> bool:
    """Return whether the error may be about the request field that asks for the usage."""
    if not isinstance(error, Refused) or isinstance(error, TooLong):
        return False
    said = error.body or str(error).encode()
    if _NAMES_FIELD.search(said):
        return error.vendor_status is None or error.vendor_status in _REFUSING
    return error.vendor_status in _INVALID and _UNKNOWN_FIELD.search(said) is not None
