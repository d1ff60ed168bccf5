"""Requests that are no streams, but take as long. A process that drains waits for them, and then ends them."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from actors.runtime.context import Owner
from streams.wire.errors import RateLimited, Unavailable


class LongRequest:
    """A request whose time ends early if its process ends."""

    def __init__(self) -> None:
        self.ended = False
        """Whether it has to end because its process ends."""
        self._timeout: asyncio.Timeout | None = None

    def limited_by(self, timeout: asyncio.Timeout) -> None:
        """Let `timeout`, which is entered, expire when the process ends."""
        self._timeout = timeout
        if self.ended:
            self.end()

    def end(self) -> None:
        self.ended = True
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())


class LongRequests:
    """The long requests of a process, which are limited per user."""

    def __init__(self) -> None:
        self._running: set[LongRequest] = set()
        self._by_owner: Counter[Owner] = Counter()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    @contextmanager
    def admitted(self, owner: Owner, *, per_user: int) -> Iterator[LongRequest]:
        """Count a request of `owner`.

        Raises `RateLimited` if the user has `per_user` of them, and `Unavailable` if the process drains.
        """
        if self._draining:
            raise Unavailable("the server is draining")
        if self._by_owner.get(owner, 0) >= per_user:
            raise RateLimited(f"at most {per_user} predictions of a user at once")
        request = LongRequest()
        self._running.add(request)
        self._by_owner[owner] += 1
        self._idle.clear()
        try:
            yield request
        finally:
            self._running.discard(request)
            self._by_owner[owner] -= 1
            if not self._by_owner[owner]:
                del self._by_owner[owner]
            if not self._running:
                self._idle.set()

    def refuse(self) -> None:
        """Refuse new requests."""
        self._draining = True

    def end(self) -> None:
        """Let the running ones end."""
        for request in self._running:
            request.end()

    async def idle(self) -> None:
        """Wait until none is running."""
        await self._idle.wait()
