"""A streamed reply from its first byte to its end, whatever the protocol: what is an end, and what is a fault."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Protocol

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


@asynccontextmanager
async def replying(answer: Incoming, reply: Reply) -> AsyncIterator[AsyncIterator[ChatItem]]:
    """Text as it comes, then the usage and the finish. Anything else than an end is raised."""
    if answer.content_type != "text/event-stream":
        raise Garbled(answer.vendor, f"answered with {answer.content_type[:64]}, not an event stream")
    async with aclosing(_items(answer, reply)) as items:
        yield items


async def _items(answer: Incoming, reply: Reply) -> AsyncGenerator[ChatItem]:
    try:
        async with aclosing(answer.pieces()) as pieces:
            async for piece in pieces:
                if text := reply.take(piece):
                    yield TextDelta(text)
                if reply.done or reply.fault is not None:
                    break
    except VendorError:
        if reply.finish is None:
            raise
    if reply.fault is not None:
        raise reply.fault
    if reply.done:
        await answer.rest()
    elif reply.finish is None:
        raise Garbled(answer.vendor, "ended its stream without its end mark", retryable=True)
    if reply.usage is not None:
        yield reply.usage
    yield reply.finish or Finish("stop")
