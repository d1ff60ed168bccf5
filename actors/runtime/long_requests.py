"""Requests that are not streams but may take as long. A draining process waits for them, then ends them."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from actors.runtime.context import Owner
from streams.refusals import REFUSED
from streams.wire.errors import RateLimited, Unavailable


class LongRequest:
    """A request that is cut short when its process shuts down."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the process is shutting down, so that the request must end."""
        self._timeout: asyncio.Timeout | None = None

    def limited_by(self, timeout: asyncio.Timeout) -> None:
        """Make `timeout`, which is already entered, expire when the process shuts down."""
        self._timeout = timeout
        if self.ended:
            self.end()

    def end(self) -> None:
        self.ended = True
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())


class LongRequests:
    """The long requests of a process. Their number is limited per user."""

    def __init__(self) -> None:
        self._running: set[LongRequest] = set()
        self._by_owner: Counter[Owner] = Counter()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    @contextmanager
    def admitted(self, owner: Owner, *, per_user: int) -> Iterator[LongRequest]:
        """Count a request of `owner` for the duration of the block.

        Raises `RateLimited` if the user has `per_user` of them, and `Unavailable` if the process is draining.
        """
        if self._draining:
            raise Unavailable("the server is draining")
        if self._by_owner.get(owner, 0) >= per_user:
            REFUSED.add(1, "predictions_per_user")
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

    def refuse_new(self) -> None:
        """Refuse new requests."""
        self._draining = True

    def end(self) -> None:
        """End the running requests."""
        for request in self._running:
            request.end()

    async def idle(self) -> None:
        """Wait until no request is running."""
        await self._idle.wait()
