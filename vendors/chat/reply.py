"""A streamed reply from its first byte to its end, whatever the protocol: what is an end, and what is a fault."""

from collections import deque
from collections.abc import AsyncIterator
from typing import Protocol

from streams.pouring import Pouring, Take
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


def replying(answer: Incoming, reply: Reply) -> AsyncIterator[ChatItem]:
    """Text as it comes, then the usage and the finish. Anything else than an end is raised."""
    if answer.content_type != "text/event-stream":
        raise Garbled(answer.vendor, f"answered with {answer.content_type[:64]}, not an event stream")
    return _Items(answer, reply)


class _Items(Pouring[ChatItem]):
    def __init__(self, answer: Incoming, reply: Reply) -> None:
        self._answer = answer
        self._reply = reply
        self._read_out = False
        self._last: deque[ChatItem] | None = None
        """What stands behind the text, once that is known."""

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
        if self._last is None:
            self._last = deque(await self._ending())
        if not self._last:
            raise StopAsyncIteration
        return self._last.popleft()

    async def pour(self, take: Take[ChatItem]) -> bool:
        wanted = True

        def took(piece: bytes) -> bool:
            nonlocal wanted
            if text := self._reply.take(piece):
                wanted = take(TextDelta(text))
            self._look()
            return wanted and not self._read_out

        try:
            if not (self._read_out or self._answer.left) and not await self._answer.pour(took):
                self._look(ended=True)
        except VendorError:
            if self._reply.finish is None:
                raise
            self._read_out = True
        if not wanted:
            return True
        async for item in self:
            if not take(item):
                return True
        return False

    def _look(self, *, ended: bool = False) -> None:
        self._read_out = ended or self._reply.done or self._reply.fault is not None

    async def _ending(self) -> list[ChatItem]:
        reply = self._reply
        if reply.fault is not None:
            raise reply.fault
        if reply.done:
            await self._answer.rest()
        elif reply.finish is None:
            raise Garbled(self._answer.vendor, "ended its stream without its end mark", retryable=True)
        finish = reply.finish or Finish("stop")
        return [finish] if reply.usage is None else [reply.usage, finish]
