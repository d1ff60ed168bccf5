"""Frames on their way to a client, and the faults that come between them."""

from dataclasses import dataclass
from typing import Protocol

from vendors.sandbox.bill import Bill, Entry
from vendors.sandbox.faults import Fault

Frame = bytes | str


@dataclass(frozen=True, slots=True)
class Close:
    """How a socket is closed in place of an error frame."""

    code: int
    reason: str = ""


class Wire(Protocol):
    async def send(self, frame: Frame) -> None: ...

    async def pause(self, seconds: float | None) -> None:
        """Let time pass, for ever without `seconds`; raises once the client has left."""

    async def close(self, how: Close) -> None: ...

    def cut(self) -> None:
        """End the connection behind what was sent, in the middle of the answer."""


class Over(Exception):
    """A fault has ended the answer: nothing more is to be sent."""


@dataclass(slots=True)
class Flow:
    """What goes out. `output` is for frames that hold some of what was asked for, `frame` for all others."""

    wire: Wire
    entry: Entry
    bill: Bill
    fault: Fault | None
    position: int
    error: Frame | Close | None
    malformed: Frame | None
    idle: Frame | None
    delay_ms: int
    pace_ms: int

    async def frame(self, frame: Frame) -> None:
        """A frame without output: a head, an end mark, usage."""
        if self.entry.outputs:
            await self._fail_if_due()
        await self.wire.send(frame)

    async def output(self, frame: Frame, **units: float) -> None:
        """A frame with output, and the units that it costs."""
        if self.fault is Fault.EMPTY_ANSWER:
            return
        if self.fault is Fault.HANG_BEFORE_OUTPUT:
            await self.wire.pause(None)
        if self.fault is Fault.SLOW_DRIP and self.position == 0 and self.idle is not None:
            await self._idle_on(self.idle)
        pause_ms = self.pace_ms if self.entry.outputs else self.delay_ms
        if pause_ms:
            await self.wire.pause(pause_ms / 1000)
        await self._fail_if_due()
        await self.wire.send(frame)
        self.entry.outputs += 1
        self.entry.billed.update(units)
        self.bill.tell()

    async def end(self) -> None:
        """Nothing more will come: a fault that still waits for its position comes now."""
        if self.fault is Fault.HANG_BEFORE_OUTPUT:
            await self.wire.pause(None)
        await self._fail_if_due(at_end=True)

    async def _idle_on(self, frame: Frame) -> None:
        """Until the client leaves."""
        while True:
            await self.wire.send(frame)
            await self.wire.pause(self.pace_ms / 1000)

    async def _fail_if_due(self, *, at_end: bool = False) -> None:
        if self.entry.outputs < self.position and not at_end:
            return
        match self.fault:
            case Fault.STALL_MID_STREAM:
                await self.wire.pause(None)
            case Fault.CUT_MID_STREAM:
                self.bill.end(self.entry, "fault")  # what follows looks like a client that leaves
                self.wire.cut()
                raise Over
            case Fault.MALFORMED_FRAME if self.malformed is not None:
                self.fault = None
                await self.wire.send(self.malformed)
            case Fault.ERROR_INSIDE_200 if self.error is not None:
                self.bill.end(self.entry, "fault")
                if isinstance(self.error, Close):
                    await self.wire.close(self.error)
                else:
                    await self.wire.send(self.error)
                raise Over
