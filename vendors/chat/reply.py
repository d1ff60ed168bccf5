"""Reads streamed replies of every chat protocol and distinguishes complete replies from broken ones."""

from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol

from streams.push import PushSource, Sink
from vendors.errors import Garbled, VendorError
from vendors.http.transport import Incoming
from vendors.protocols import ChatItem, Finish, TextDelta, Usage


class Reply(Protocol):
    """An incremental parser of one protocol. It does no I/O."""

    @property
    def done(self) -> bool:
        """Whether the end mark has arrived."""

    fault: VendorError | None
    """The error that ended the reply, until it is raised. The text before it is valid."""

    @property
    def usage(self) -> Usage | None: ...

    @property
    def finish(self) -> Finish | None:
        """Why the model stopped. This may be known before the last text."""

    @property
    def is_whole(self) -> bool:
        """Whether the text is complete even if the stream breaks off or an error follows."""

    def feed(self, piece: bytes) -> str:
        """Return the text in `piece`, up to the first error."""


class open_reply(PushSource[ChatItem]):  # noqa: N801 - used like a function
    """A context manager that opens `response` and returns the items of the reply: text, then usage and finish.

    A reply that does not end properly raises an error.
    """

    __slots__ = ("_exhausted", "_last", "_opening", "_reply", "_response")

    def __init__(self, response: AbstractAsyncContextManager[Incoming], reply: Reply) -> None:
        self._opening = response
        self._reply = reply
        self._exhausted = False
        self._last: list[ChatItem] | None = None
        """The items after the text, last one first, or `None` while text may follow."""

    async def __aenter__(self) -> AsyncIterator[ChatItem]:
        self._response = response = await self._opening.__aenter__()
        if response.content_type != "text/event-stream":
            fault = Garbled(response.vendor, f"answered with {response.content_type[:64]}, not an event stream")
            await self._opening.__aexit__(None, None, None)
            raise fault
        return self

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Coroutine[Any, Any, bool | None]:
        return self._opening.__aexit__(kind, error, trace)

    async def __anext__(self) -> ChatItem:
        if self._response.closed:
            raise StopAsyncIteration
        while not self._exhausted:
            try:
                piece = await self._response.read()
            except VendorError:
                if not self._reply.is_whole:
                    raise
                piece = b""
            text = self._reply.feed(piece)
            self._check_end(ended=not piece)
            if text:
                return TextDelta(text)
        last = await self._ending()
        if not last:
            raise StopAsyncIteration
        return last.pop()

    async def push_to(self, sink: Sink[ChatItem]) -> bool:
        reply, accepts_more = self._reply, True

        def push(piece: bytes) -> bool:
            nonlocal accepts_more
            if text := reply.feed(piece):
                accepts_more = sink(TextDelta(text))
            return accepts_more and not reply.done and reply.fault is None

        try:
            if not (self._exhausted or self._response.closed):
                self._check_end(ended=not await self._response.push_to(push))
        except VendorError:
            if not reply.is_whole:
                raise
            self._exhausted = True
        if not accepts_more:
            return True
        last = [] if self._response.closed else await self._ending()
        while last:
            if not sink(last.pop()):
                return True
        return False

    def _take_fault(self) -> VendorError:
        """Return the error of the reply. It is not kept, because its traceback will refer to this object."""
        fault, self._reply.fault = self._reply.fault, None
        assert fault is not None, "called after a fault"
        return fault

    def _check_end(self, *, ended: bool) -> None:
        self._exhausted = ended or self._reply.done or self._reply.fault is not None

    async def _ending(self) -> list[ChatItem]:
        """Return the items after the text that are not yet consumed. Raise the error of the reply."""
        if self._last is not None:
            return self._last
        reply = self._reply
        if reply.fault is not None and not reply.is_whole:
            raise self._take_fault()
        if reply.done:
            await self._response.drain()
        elif reply.finish is None:
            raise Garbled(self._response.vendor, "ended its stream without a final event", retryable=True)
        finish = reply.finish or Finish("stop")
        self._last = [finish] if reply.usage is None else [finish, reply.usage]
        return self._last
