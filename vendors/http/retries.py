"""The retry of a call that may be repeated."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from vendors.errors import TimedOut, VendorError
from vendors.http.outgoing import Outgoing

MAX_RETRY_AFTER_S = 2.0
_JITTER_S = (0.05, 0.25)

Opened = TypeVar("Opened")


async def with_retry(
    call: Outgoing, once: Callable[[], Awaitable[Opened]], again: Callable[[], Awaitable[Opened]]
) -> Opened:
    """Return the result of `once`, or that of `again` if the failure is transient and the call may be repeated.

    A vendor receives a call that may be repeated at most three times: over an idle connection, over a new one if
    the idle one failed before the first byte of a response (`Http1Client.send`), and over a new one by this retry.
    Without an idle connection it is twice. Any other call is sent once, over a new connection. The retry of a
    refused call uses a new connection too, so that a load balancer may choose another server.
    """
    try:
        return await once()
    except VendorError as error:
        if not (call.may_repeat and _is_transient(error)):
            raise
        wait_s = error.retry_after_s
    await asyncio.sleep(random.uniform(*_JITTER_S) if wait_s is None else wait_s)  # noqa: S311 - jitter
    return await again()


def _is_transient(error: VendorError) -> bool:
    return error.retryable and not isinstance(error, TimedOut) and (error.retry_after_s or 0) <= MAX_RETRY_AFTER_S
