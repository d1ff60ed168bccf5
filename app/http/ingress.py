"""Bounds how long one turn of the event loop parses what clients send."""

import asyncio
import re
import time
from collections import deque
from typing import Any

from aiohttp import web

READ_BUFFER_BYTES = 16 * 1024
"""aiohttp stops parsing a body once twice as many bytes, or a sixteenth as many chunks, wait to be read."""
SLICE_BYTES = 16 * 1024
SLICE_LINES = 64
"""The head of a request rarely has more. A chunk has two: its size, and its data."""
_FULL_SLICE = re.compile(rb"(?:[^\n]*+\n){%d}" % SLICE_LINES)
_SLICES_PER_TURN = 8
_BURST_S = 0.001
_SHARE = 0.15
"""Of the loop's time. Handlers that read what was parsed take up to three times as much on top."""


def slice_end(data: bytes, start: int) -> int:
    """The end of the slice of `data` that begins at `start`: after so many bytes or lines, whichever come first."""
    end = min(start + SLICE_BYTES, len(data))
    if data.count(b"\n", start, end) > SLICE_LINES and (full := _FULL_SLICE.match(data, start, end)):
        return full.end()
    return end


class ParsingTurns:
    """Lets connections parse what they hold back, one slice each in turn, within limits that all of them share.

    A loop turn parses few slices, because the handlers that read them run in the next turn, all of them. The time
    spent on parsing is a token bucket that holds `_BURST_S` and refills at the rate `_SHARE`.
    """

    __slots__ = ("_budget_s", "_loop", "_measured_at", "_scheduled", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[SlicedConnection] = deque()
        self._scheduled = False
        self._budget_s = _BURST_S
        self._measured_at = time.monotonic()

    def add(self, connection: "SlicedConnection") -> None:
        """Call `connection.parse_slice()` soon, and again for as long as it returns true."""
        self._waiting.append(connection)
        if not self._scheduled:
            self._refill()
            self._schedule()

    def _schedule(self) -> None:
        self._scheduled = True
        if self._budget_s > 0:
            self._loop.call_soon(self._run)
        else:
            self._loop.call_later((_BURST_S - self._budget_s) / _SHARE, self._run)

    def _run(self) -> None:
        self._scheduled = False
        began = self._refill()
        for _ in range(_SLICES_PER_TURN):
            if not self._waiting:
                break
            connection = self._waiting.popleft()
            if connection.parse_slice():
                self._waiting.append(connection)
        self._measured_at = time.monotonic()
        self._budget_s -= self._measured_at - began
        if self._waiting and not self._scheduled:
            self._schedule()

    def _refill(self) -> float:
        now = time.monotonic()
        self._budget_s = min(_BURST_S, self._budget_s + (now - self._measured_at) * _SHARE)
        self._measured_at = now
        return now


class SlicedConnection(web.RequestHandler):
    """A server's connection that parses a large read, or one of many lines, slice by slice over several loop turns.

    Other reads are parsed at once. The transport is paused while a part of a read is held back, so that at most one
    read is held, and an end of the connection is seen behind it.
    """

    __slots__ = ("_held", "_held_from", "_parser_paused", "_turns", "_waits_for_turn")

    def __init__(self, *args: Any, turns: ParsingTurns, **options: Any) -> None:
        super().__init__(*args, read_bufsize=READ_BUFFER_BYTES, **options)
        self._turns = turns
        self._held = b""
        self._held_from = 0
        self._parser_paused = False
        self._waits_for_turn = False

    def parse(self, data: bytes) -> None:
        """Parse the next bytes of the connection."""
        super().data_received(data)

    def data_received(self, data: bytes) -> None:
        """Take a read. aiohttp itself calls it with nothing, to let its parser go on after a pause."""
        if not data or (
            not self._held
            and len(data) <= SLICE_BYTES
            and data.count(b"\n") <= SLICE_LINES
            and not (self._reading_paused or self._buffer_paused)
        ):
            self.parse(data)
            return
        self._held = self._held[self._held_from :] + data
        self._held_from = 0
        self._pause_transport_reading()
        self._wait_for_turn()

    def parse_slice(self) -> bool:
        """Parse the next slice of what is held back. Returns whether another can follow."""
        if self._can_parse():
            start = self._held_from
            self._held_from = end = slice_end(self._held, start)
            piece = self._held[start:end]
            if end == len(self._held):
                self.drop_held()
            self.parse(piece)
        self._waits_for_turn = self._can_parse()
        if not self._waits_for_turn and not self._reading_paused and not self._buffer_paused:
            self._resume_transport_reading()
        return self._waits_for_turn

    def drop_held(self) -> None:
        """Forget what is held back."""
        self._held = b""
        self._held_from = 0

    def connection_lost(self, exc: BaseException | None) -> None:
        self.drop_held()
        super().connection_lost(exc)

    def pause_reading(self) -> None:
        self._parser_paused = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002 - aiohttp's signature
        """Called for every piece of a body that is read, also where nothing was paused: that must cost nothing."""
        if self._parser_paused:
            self._parser_paused = not resume_parser
            super().resume_reading(resume_parser)

    def _can_parse(self) -> bool:
        return bool(self._held) and not self._reading_paused and not self._buffer_paused

    def _wait_for_turn(self) -> None:
        if not self._waits_for_turn and self._can_parse():
            self._waits_for_turn = True
            self._turns.add(self)

    def _resume_transport_reading(self) -> None:
        """Called by aiohttp when none of its own buffers is full any more."""
        if self._held:
            self._wait_for_turn()
        else:
            super()._resume_transport_reading()
