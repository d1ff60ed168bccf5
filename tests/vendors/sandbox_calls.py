"""The outcome of a client's call to the sandbox, and calls that are cancelled while they wait."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from streams.tasks import background
from streams.wire.errors import ServiceError
from tests.waiting import passes
from vendors.errors import Garbled, Refused, VendorError
from vendors.protocols import AudioBytes, TextDelta
from vendors.sandbox.bill import BilledCall
from vendors.sandbox.faults import Fault, key_of
from vendors.sandbox.server import Running

AT = [("before", 0), ("after", 1)]
"""Positions of a fault: the option of the key, and the number of outputs before the fault."""

BROKEN = [
    (Fault.CUT_MID_STREAM, VendorError),
    (Fault.MALFORMED_FRAME, Garbled),
    (Fault.ERROR_INSIDE_200, Refused),
]
"""Faults within an answer, and the error that each becomes."""

Open = Callable[[str], AbstractAsyncContextManager[AsyncIterator[Any]]]
"""Opens a call with the given key."""


@dataclass
class Outcome:
    """The items of a call, and the error that ended it."""

    items: list[Any] = field(default_factory=list)
    error: ServiceError | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at the first output."""

    @property
    def text(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, TextDelta))

    @property
    def audio(self) -> bytes:
        return b"".join(item.audio for item in self.items if isinstance(item, AudioBytes))

    def kinds(self, *kinds: type) -> list[Any]:
        return [item for item in self.items if isinstance(item, kinds)]


async def outcome(call: AbstractAsyncContextManager[AsyncIterator[Any]], into: Outcome | None = None) -> Outcome:
    found = Outcome() if into is None else into
    try:
        async with call as items:
            async for item in items:
                found.items.append(item)
                if isinstance(item, TextDelta | AudioBytes):
                    found.begun.set()
    except ServiceError as error:
        found.error = error
    return found


async def left_while_waiting(
    sandbox: Running, call: Open, fault: Fault, *, outputs: int, **key_options: object
) -> tuple[Outcome, BilledCall]:
    """Cancel a call that waits because of `fault`. Return its outcome, and its entry in the bill."""
    found = Outcome()
    async with background(outcome(call(key_of(fault=fault, **key_options)), found)):
        await sandbox.bill.wait(lambda entry: entry.outputs >= outputs)
        if outputs:
            await found.begun.wait()
    async with asyncio.timeout(1):
        return found, await sandbox.bill.wait()


def calls(sandbox: Running) -> list[BilledCall]:
    return list(sandbox.bill.since(0))


async def check_refusal(
    call: Open, sandbox: Running, fault: Fault, *, status: int, retryable: bool, tries: int
) -> None:
    """Check the error of a call that the sandbox refuses with `fault`, and how often it was called."""
    found = await outcome(call(key_of(fault=fault, retry_after_s=9)))

    assert found.items == []
    assert isinstance(found.error, Refused)
    assert (found.error.vendor_status, found.error.retryable) == (status, retryable)
    assert found.error.retry_after_s == (9 if fault is Fault.RATE_LIMITED else None)
    assert [entry.how for entry in calls(sandbox)] == ["fault"] * tries


async def leave_waiting(call: Coroutine[Any, Any, Any], sandbox: Running) -> None:
    """Begin a call that the sandbox does not finish, and cancel it once all that the sandbox has sent is read."""
    async with background(call) as waiting:
        await sandbox.bill.wait(lambda _: True)
        await passes(200)
        assert not waiting.done()
