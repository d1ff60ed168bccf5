"""The messages that an actor accepts, and its bounded mailbox."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attach:
    """A reader was attached."""


@dataclass(frozen=True, slots=True)
class Detach:
    """A reader was detached."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel the stream at the client's request.

    `aborted`: the client disconnected before its input was complete; nothing is stored. `heard_ms`: how much of the
    audio the client has played, in ms; `None` if it did not report that.
    """

    aborted: bool = False
    heard_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Replicate:
    """Copy the log to Valkey, because a reader may continue in another process."""


@dataclass(frozen=True, slots=True)
class Drain:
    """End the stream with a retryable error, because the process is shutting down."""


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """End the stream with an error, because the session that started it has ended."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """End the stream with an error, because another process has taken it over."""


@dataclass(frozen=True, slots=True)
class Expire:
    """A timer has expired: the maximum duration of the stream (`deadline`), or the grace time without readers."""

    deadline: bool


Message = Attach | Detach | Cancel | Replicate | Drain | SessionEnded | TakenOver | Expire


class Mailbox:
    """A bounded queue that delivers messages in order, while it is open, and never from within `put`."""

    __slots__ = ("_closed", "_loop", "_messages", "_receive")
    LIMIT = 256

    def __init__(self) -> None:
        self._receive: Callable[[Message], None] | None = None
        self._messages: list[Message] = []
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def open(self, receive: Callable[[Message], None]) -> None:
        """Call `receive` with each message from now on, including those already queued."""
        self._receive = receive
        if self._messages:
            self._loop.call_soon(self._deliver)

    def put(self, message: Message) -> bool:
        """Queue a message without blocking. Return `False` if the mailbox is full or closed."""
        if self._closed or len(self._messages) >= self.LIMIT:
            return False
        if self._receive is not None and not self._messages:
            self._loop.call_soon(self._deliver)
        self._messages.append(message)
        return True

    def close(self) -> None:
        """Deliver the queued messages and refuse further ones."""
        self._deliver()
        self._closed = True
        self._receive = None

    def _deliver(self) -> None:
        messages, self._messages = self._messages, []
        if (receive := self._receive) is not None:
            for message in messages:
                receive(message)
