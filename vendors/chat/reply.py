"""A streamed reply from its first byte to its end, whatever the protocol: what is an end, and what is a fault."""

from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol

from streams.push import PushSource, Sink
from vendors.errors import Garbled, VendorError
from vendors.protocols import ChatItem, Finish, TextDelta, Usage
from vendors.transport import Incoming


class Reply(Protocol):
    """A reply as it is read: a pure parser of one protocol."""

    @property
    def done(self) -> bool:
        """Its end mark was seen."""

    @property
    def fault(self) -> VendorError | None:
        """What broke it; the text before it counts."""

    @property
    def usage(self) -> Usage | None: ...

    @property
    def finish(self) -> Finish | None:
        """Why the model stopped: once this is known the text is whole."""

    def take(self, piece: bytes) -> str:
        """The text of `piece`, up to a fault where it holds one."""


class replying(PushSource[ChatItem]):  # noqa: N801 - used as a function is
    """The reply that `asked` brings, for a block: text as it comes, then the usage and the finish.

    Anything else than an end is raised.
    """

    __slots__ = ("_answer", "_asked", "_last", "_read_out", "_reply")

    def __init__(self, asked: AbstractAsyncContextManager[Incoming], reply: Reply) -> None:
        self._asked = asked
        self._reply = reply
        self._read_out = False
        self._last: list[ChatItem] | None = None
        """What stands behind the text, once that is known; the last comes first."""

    async def __aenter__(self) -> AsyncIterator[ChatItem]:
        self._answer = answer = await self._asked.__aenter__()
        if answer.content_type != "text/event-stream":
            fault = Garbled(answer.vendor, f"answered with {answer.content_type[:64]}, not an event stream")
            await self._asked.__aexit__(None, None, None)
            raise fault
        return self

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Coroutine[Any, Any, bool | None]:
        return self._asked.__aexit__(kind, error, trace)

    async def __anext__(self) -> ChatItem:
        if self._answer.left:
            raise StopAsyncIteration
        while not self._read_out:
            try:
                piece = await self._answer.read()
            except VendorError:
                if self._reply.finish is None:
                    raise
                piece = b""
            text = self._reply.take(piece)
            self._look(ended=not piece)
            if text:
                return TextDelta(text)
        last = await self._ending()
        if not last:
            raise StopAsyncIteration
        return last.pop()

    async def push_to(self, sink: Sink[ChatItem]) -> bool:
        reply, wanted = self._reply, True

        def took(piece: bytes) -> bool:
            nonlocal wanted
            if text := reply.take(piece):
                wanted = sink(TextDelta(text))
            return wanted and not reply.done and reply.fault is None

        try:
            if not (self._read_out or self._answer.left):
                self._look(ended=not await self._answer.push_to(took))
        except VendorError:
            if reply.finish is None:
                raise
            self._read_out = True
        if not wanted:
            return True
        last = [] if self._answer.left else await self._ending()
        while last:
            if not sink(last.pop()):
                return True
        return False

    def _look(self, *, ended: bool) -> None:
        self._read_out = ended or self._reply.done or self._reply.fault is not None

    async def _ending(self) -> list[ChatItem]:
        """What of it is still to be given."""
        if self._last is not None:
            return self._last
        reply = self._reply
        if reply.fault is not None:
            raise reply.fault
        if reply.done:
            await self._answer.rest()
        elif reply.finish is None:
            raise Garbled(self._answer.vendor, "ended its stream without its end mark", retryable=True)
        finish = reply.finish or Finish("stop")
        self._last = [finish] if reply.usage is None else [finish, reply.usage]
        return self._last
