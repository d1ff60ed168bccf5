"""What an actor can be told, and the bounded box that it is told by."""

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attach:
    """A reader has come."""


@dataclass(frozen=True, slots=True)
class Detach:
    """A reader has left."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """The client wants no more. `aborted`: it left before its input was whole, nothing is stored.

    `heard_ms`: how much of the audio it has played, where it says so.
    """

    aborted: bool = False
    heard_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Spill:
    """Somebody may read on elsewhere: keep the events where other processes find them."""


@dataclass(frozen=True, slots=True)
class Drain:
    """The process is going: end with an error that invites to come again."""


@dataclass(frozen=True, slots=True)
class Expire:
    """A time is over: the play's own (`deadline`), or that of a stream that nobody reads (`grace`)."""

    deadline: bool


@dataclass(frozen=True, slots=True)
class Played:
    """The play is over."""


Message = Attach | Detach | Cancel | Spill | Drain | Expire | Played


class Mailbox:
    """One reader; `tell` never blocks: a full box refuses."""

    __slots__ = ("_messages", "_waiter")
    LIMIT = 256

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._waiter: asyncio.Future[None] | None = None

    def tell(self, message: Message) -> bool:
        """Whether the message was taken; `Played` always is."""
        if len(self._messages) >= self.LIMIT and not isinstance(message, Played):
            return False
        self._messages.append(message)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        return True

    async def next(self) -> Message:
        while not self._messages:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._messages.pop(0)
