"""What an actor can be told, and the bounded box that it is told by."""

import asyncio
from collections.abc import Callable
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


Message = Attach | Detach | Cancel | Spill | Drain | Expire


class Mailbox:
    """One reader, a function that is called with each message, in order and never from within `tell`.

    `tell` never blocks: a full box refuses, and one that is closed.
    """

    __slots__ = ("_loop", "_messages", "_take")
    LIMIT = 256

    def __init__(self, take: Callable[[Message], None]) -> None:
        self._take: Callable[[Message], None] | None = take
        self._messages: list[Message] = []
        self._loop = asyncio.get_running_loop()

    def tell(self, message: Message) -> bool:
        """Whether the message was taken."""
        if self._take is None or len(self._messages) >= self.LIMIT:
            return False
        if not self._messages:
            self._loop.call_soon(self._deliver)
        self._messages.append(message)
        return True

    def close(self) -> None:
        """Give out what was told, and take no more."""
        self._deliver()
        self._take = None

    def _deliver(self) -> None:
        messages, self._messages = self._messages, []
        if (take := self._take) is not None:
            for message in messages:
                take(message)
