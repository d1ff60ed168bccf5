"""Limits on the memory of large request bodies, from the arrival of their bytes until the request is answered."""

from collections import Counter

from aiohttp import web

from app.http.endpoint import REQUEST_CONTEXT, RequestContext
from app.http.large_responses import caller_of
from streams.wire.errors import RateLimited, Unavailable

_COUNTED_BYTES = 32 * 1024
"""Bodies up to this size are not counted: the number of connections limits them."""
_CALLER_BYTES = 64 * 1024 * 1024
_PROCESS_BYTES = 256 * 1024 * 1024


class HeldBodies:
    """Counts the bytes of large bodies, for the user or for the network of a caller without one.

    A caller and the process may each have one body of any size.
    """

    def __init__(self, *, per_caller: int = _CALLER_BYTES, per_process: int = _PROCESS_BYTES) -> None:
        self._per_caller = per_caller
        self._per_process = per_process
        self._by_caller: Counter[str] = Counter()
        self.size_bytes = 0

    def grow(self, request: web.Request, size_bytes: int) -> None:
        """Count the body of `request`, of which `size_bytes` have arrived.

        Raises `RateLimited` or `Unavailable` where the caller or the process has too much in other bodies.
        """
        context = request[REQUEST_CONTEXT]
        if size_bytes <= _COUNTED_BYTES:
            return
        caller = context.body_caller or caller_of(request, context)
        grown = size_bytes - context.body_bytes
        if (held := self._by_caller[caller]) > context.body_bytes and held + grown > self._per_caller:
            raise RateLimited("too many large bodies of this caller have not been answered yet")
        if self.size_bytes > context.body_bytes and self.size_bytes + grown > self._per_process:
            raise Unavailable(
                "the server has too many large bodies that have not been answered yet", retry_after_s=2
            )
        context.body_bytes, context.body_caller = size_bytes, caller
        self._by_caller[caller] += grown
        self.size_bytes += grown

    def release(self, context: RequestContext) -> None:
        """Count the body no longer."""
        self.size_bytes -= context.body_bytes
        self._by_caller[context.body_caller] -= context.body_bytes
        if not self._by_caller[context.body_caller]:
            del self._by_caller[context.body_caller]
        context.body_bytes = 0


HELD_BODIES: web.AppKey[HeldBodies] = web.AppKey("held_bodies", HeldBodies)


def release_body(request: web.Request) -> None:
    """Count the body of `request` no longer, if it was counted."""
    context = request[REQUEST_CONTEXT]
    if context.body_bytes:
        request.app[HELD_BODIES].release(context)
