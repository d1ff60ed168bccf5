"""Sending the frames of an answer, and the faults that occur between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from vendors.sandbox.bill import Bill, BilledCall
from vendors.sandbox.faults import Fault

Frame = bytes | str


@dataclass(frozen=True, slots=True)
class Close:
    """The close of a socket, for protocols without error frames."""

    code: int
    reason: str = ""


class FrameSink(Protocol):
    async def send(self, frame: Frame) -> None: ...

    async def pause(self, seconds: float | None) -> None:
        """Sleep, forever if `seconds` is None. Raise an exception when the client disconnects."""

    async def close(self, close: Close) -> None: ...

    def cut(self) -> None:
        """Close the connection in the middle of the answer, after sending what is buffered."""


class AnswerEnded(Exception):
    """A fault has ended the answer. Nothing more may be sent."""


@dataclass(slots=True)
class Flow:
    """Sends the frames of an answer. Use `output()` for frames with text or audio and `frame()` for all others."""

    sink: FrameSink
    entry: BilledCall
    bill: Bill
    fault: Fault | None
    position: int
    error: Frame | Close | None
    malformed: Frame | None
    idle: Frame | None
    delay_ms: int
    pace_ms: int
    odd: Sequence[bytes] = ()
    """What a client should skip."""
    odd_frames: Callable[[bytes], Sequence[Frame]] | None = None
    """Returns the frames for each of `odd`."""

    async def frame(self, frame: Frame) -> None:
        """Send a frame without output, such as a head, an end mark or usage."""
        if self.entry.outputs:
            await self._fail_if_due()
        await self.sink.send(frame)

    async def output(self, frame: Frame, **units: float) -> None:
        """Send a frame with output, and add `units` to the bill."""
        if self.fault is Fault.EMPTY_ANSWER:
            return
        if self.fault is Fault.HANG_BEFORE_OUTPUT:
            await self.sink.pause(None)
        if self.fault is Fault.SLOW_DRIP and self.position == 0 and self.idle is not None:
            await self._repeat_idle(self.idle)
        pause_ms = self.pace_ms if self.entry.outputs else self.delay_ms
        if pause_ms:
            await self.sink.pause(pause_ms / 1000)
        await self._fail_if_due()
        await self._send_odd()
        await self.sink.send(frame)
        self.entry.outputs += 1
        self.entry.billed.update(units)
        self.bill.notify()

    async def end(self) -> None:
        """End the answer. A fault that has not reached its position occurs now."""
        if self.fault is Fault.HANG_BEFORE_OUTPUT:
            await self.sink.pause(None)
        await self._fail_if_due(at_end=True)
        await self._send_odd()

    async def _send_odd(self) -> None:
        if self.odd_frames is not None:
            for odd in self.odd:
                for frame in self.odd_frames(odd):
                    await self.sink.send(frame)

    async def _repeat_idle(self, frame: Frame) -> None:
        """Send `frame` repeatedly until the client disconnects."""
        while True:
            await self.sink.send(frame)
            await self.sink.pause(self.pace_ms / 1000)

    async def _fail_if_due(self, *, at_end: bool = False) -> None:
        if self.entry.outputs < self.position and not at_end:
            return
        match self.fault:
            case Fault.STALL_MID_STREAM:
                await self.sink.pause(None)
            case Fault.CUT_MID_STREAM:
                self.bill.end(self.entry, "fault")  # The cut would otherwise be recorded as closed by the client.
                self.sink.cut()
                raise AnswerEnded
            case Fault.MALFORMED_FRAME if self.malformed is not None:
                self.fault = None
                await self.sink.send(self.malformed)
            case Fault.ERROR_INSIDE_200 if self.error is not None:
                self.bill.end(self.entry, "fault")
                if isinstance(self.error, Close):
                    await self.sink.close(self.error)
                else:
                    await self.sink.send(self.error)
                raise AnswerEnded
