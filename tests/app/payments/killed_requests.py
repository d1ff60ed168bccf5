"""Ends a request or job of a server of this process between its call to the wallet platform and its commit.

What the process has in memory is lost, as if it had been killed. Its servers and the other requests live on.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import Any

from aiohttp import ClientError

from tests.app.payments.wallet.wallets import Wallet
from tests.waiting import until

_LOGIC = ("app.payments.", "app.refunds.")


async def kill_request(wallet: Wallet, request: Coroutine[Any, Any, None], *, path: str = "") -> None:
    """Start a request or job, and cancel what handles it as soon as the platform was called.

    `path` is the end of the path of that call. Default: of any. The platform answers later than that. If it is not
    called, the request is completed.
    """
    before = _calls(wallet, path)
    running = asyncio.ensure_future(request)  # noqa: TID251
    await until(lambda: running.done() or _calls(wallet, path) > before)
    for task in _handlers():
        task.cancel()
    with suppress(ClientError, asyncio.CancelledError, AssertionError):
        await running


def _calls(wallet: Wallet, path: str) -> int:
    """How often the platform was called, except for access tokens."""
    paths = [call.asked.get("path") or "" for call in wallet.sandbox.bill.since(0) if call.asked]
    return sum(bool(found) and found.endswith(path) for found in paths)


def _handlers() -> Iterator[asyncio.Task[Any]]:
    """Yield the tasks that are in the logic of payments, or in a call by it."""
    for task in asyncio.all_tasks():
        awaited: Any = task.get_coro()
        while frame := getattr(awaited, "cr_frame", None):
            if frame.f_globals["__name__"].startswith(_LOGIC):
                yield task
                break
            awaited = awaited.cr_await
