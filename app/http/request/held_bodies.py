"""Limits on the memory of large request bodies, from the arrival of their bytes until the request is answered."""

from aiohttp import web

from app.http.request.held_bytes import HeldBytes, caller_of
from app.http.rows.endpoint import REQUEST_CONTEXT, RequestContext

_COUNTED_BYTES = 32 * 1024
"""Bodies up to this size are not counted: the number of connections limits them."""
_CALLER_BYTES = 64 * 1024 * 1024
_PROCESS_BYTES = 256 * 1024 * 1024


class HeldBodies:
    """Counts the bytes of large bodies, for the user or for the network of a caller without one."""

    def __init__(self, *, per_caller: int = _CALLER_BYTES, per_process: int = _PROCESS_BYTES) -> None:
        self._held = HeldBytes(
            per_caller=per_caller,
            per_process=per_process,
            caller_fault="too many large bodies of this caller have not been answered yet",
            process_fault="the server has too many large bodies that have not been answered yet",
        )

    @property
    def size_bytes(self) -> int:
        return self._held.size_bytes

    def grow(self, request: web.Request, size_bytes: int) -> None:
        """Count the body of `request`, of which `size_bytes` have arrived. Raises the errors of `HeldBytes.add`."""
        context = request[REQUEST_CONTEXT]
        if size_bytes <= _COUNTED_BYTES:
            return
        caller = context.body_caller or caller_of(request, context)
        self._held.add(caller, size_bytes - context.body_bytes, counted=context.body_bytes)
        context.body_bytes, context.body_caller = size_bytes, caller

    def release(self, context: RequestContext) -> None:
        """Stop counting the body."""
        self._held.release(context.body_caller, context.body_bytes)
        context.body_bytes = 0


HELD_BODIES: web.AppKey[HeldBodies] = web.AppKey("held_bodies", HeldBodies)


def release_body(request: web.Request) -> None:
    """Count the body of `request` no longer, if it was counted."""
    context = request[REQUEST_CONTEXT]
    if context.body_bytes:
        request.app[HELD_BODIES].release(context)
