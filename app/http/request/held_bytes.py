"""The memory that large bodies and responses hold, counted for each caller and for the process."""

from collections import Counter

from aiohttp import web

from app.http.callers.addresses import client_network
from app.http.rows.endpoint import RequestContext
from app.services import SERVICES
from streams.wire.errors import RateLimited, Unavailable


class HeldBytes:
    """Counts bytes until they are released. A caller and the process may each have one request of any size."""

    def __init__(self, *, per_caller: int, per_process: int, caller_fault: str, process_fault: str) -> None:
        self._per_caller = per_caller
        self._per_process = per_process
        self._caller_fault = caller_fault
        self._process_fault = process_fault
        self._by_caller: Counter[str] = Counter()
        self.size_bytes = 0

    def add(self, caller: str, size_bytes: int, *, counted: int = 0) -> None:
        """Count `size_bytes` more of a request, of which `counted` are counted already.

        Raises `RateLimited` or `Unavailable` where other requests of the caller or the process hold too much.
        """
        if (held := self._by_caller[caller]) > counted and held + size_bytes > self._per_caller:
            raise RateLimited(self._caller_fault)
        if self.size_bytes > counted and self.size_bytes + size_bytes > self._per_process:
            raise Unavailable(self._process_fault, retry_after_s=2)
        self._by_caller[caller] += size_bytes
        self.size_bytes += size_bytes

    def release(self, caller: str, size_bytes: int) -> None:
        """Stop counting all bytes of a request."""
        self.size_bytes -= size_bytes
        self._by_caller[caller] -= size_bytes
        if not self._by_caller[caller]:
            del self._by_caller[caller]


def caller_of(request: web.Request, context: RequestContext) -> str:
    """Return whom the bytes of a request are counted for: the user, or the network of a caller without one."""
    if context.user_id is not None:
        return f"user:{context.app_id}:{context.user_id}"
    return f"address:{client_network(request, request.app[SERVICES].settings.trusted_proxies)}"
