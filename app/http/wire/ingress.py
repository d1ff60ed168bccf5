"""Limits the time that one iteration of the event loop spends on parsing the input of clients."""

import asyncio
import re
import time
from heapq import heappop, heappush
from typing import Any

from app.http.wire.aiohttp_server import ServerConnection

READ_BUFFER_BYTES = 16 * 1024
"""aiohttp stops parsing a body once twice this many bytes, or a sixteenth as many chunks, are unread."""
SLICE_BYTES = 16 * 1024
SLICE_LINES = 64
"""The head of a request rarely has more lines. A chunk has two: its size and its data."""
_FULL_SLICE = re.compile(rb"(?:[^\n]*+\n){%d}" % SLICE_LINES)
_SLICES_PER_TURN = 4
_BURST_S = 0.001
_MOST_DEBT_S = 0.02
"""The highest cost of one turn. A longer turn was interrupted, for example by a garbage collection."""
_MAX_DELAY_ROUNDS = 3
"""The longest extra wait of a connection that has parsed much recently. In a round, all others get a slice."""
_HALF_LIFE_S = 30
_TYPICAL_OVER_SLICES = 64
DENSE_SHARE = 0.15
"""Maximum fraction of the loop's time. Handlers that read the parsed data take up to three times as much again."""
_FREE_BYTES_PER_LINE = 1536
_DENSE_LINES = 4 * SLICE_LINES
_FRAMING_BYTES_PER_LINE = 4
"""A chunk has at least five bytes of framing in its two lines, and about eight if it has a few KiB of content."""


def slice_end(data: bytes, start: int) -> int:
    """Return the end of the slice of `data` that begins at `start`.

    A slice has at most `SLICE_BYTES` bytes and `SLICE_LINES` lines.
    """
    end = min(start + SLICE_BYTES, len(data))
    if data.count(b"\n", start, end) > SLICE_LINES and (full := _FULL_SLICE.match(data, start, end)):
        return full.end()
    return end


class ParsingTurns:
    """Lets connections parse the bytes they hold back, slice by slice, within limits that all share.

    Of the waiting connections, those that have parsed few slices recently go first, so that endless uploads hardly
    delay an upload of ordinary size. The others wait longer, but not forever: a connection that is added while `n`
    others wait gets its slice after at most `(1 + _MAX_DELAY_ROUNDS) * n` slices of other connections.

    One iteration of the loop parses few slices, because the next iteration runs all handlers that read them. The
    time for parsing is limited by a token bucket that holds `_BURST_S` and refills at the rate `share`. If that
    is None, only the number of slices is limited.
    """

    __slots__ = (
        "_additions",
        "_budget_s",
        "_loop",
        "_measured_at",
        "_scheduled",
        "_share",
        "_typical_slices",
        "_waiting",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, *, share: float | None) -> None:
        self._loop = loop
        self._share = share
        self._waiting: list[tuple[float, int, SlicedConnection]] = []
        """A heap. The n-th connection that is added has the position n plus its delay; n also breaks ties."""
        self._additions = 0
        self._typical_slices = 1.0
        """Moving average of `recent_slices` over the connections that have parsed the last slices."""
        self._scheduled = False
        self._budget_s = _BURST_S
        self._measured_at = time.monotonic()

    def add(self, connection: "SlicedConnection") -> None:
        """Call `connection.parse_slice()` soon, and repeat the call while it returns True."""
        if not self._scheduled:
            self._refill()
            self._schedule()
        connection.decay_recent_slices(self._measured_at)
        self._push(connection)

    def _push(self, connection: "SlicedConnection") -> None:
        delay_rounds = _MAX_DELAY_ROUNDS * min(1.0, connection.recent_slices / self._typical_slices)
        self._additions += 1
        position = self._additions + delay_rounds * len(self._waiting)
        heappush(self._waiting, (position, self._additions, connection))

    def _schedule(self) -> None:
        self._scheduled = True
        if self._share is None or self._budget_s > 0:
            self._loop.call_soon(self._run)
        else:
            self._loop.call_later((_BURST_S - self._budget_s) / self._share, self._run)

    def _run(self) -> None:
        self._scheduled = False
        began = self._refill()
        for _ in range(_SLICES_PER_TURN):
            if not self._waiting:
                break
            _, _, connection = heappop(self._waiting)
            connection.recent_slices += 1
            self._typical_slices += (connection.recent_slices - self._typical_slices) / _TYPICAL_OVER_SLICES
            if connection.parse_slice():
                self._push(connection)
        self._measured_at = time.monotonic()
        self._budget_s -= min(self._measured_at - began, _MOST_DEBT_S)
        if self._waiting and not self._scheduled:
            self._schedule()

    def _refill(self) -> float:
        now = time.monotonic()
        self._budget_s = min(_BURST_S, self._budget_s + (now - self._measured_at) * (self._share or 0))
        self._measured_at = now
        return now


class SlicedConnection(ServerConnection):
    """A server connection that parses a read of many bytes or lines in slices, over several loop iterations.

    Other reads are parsed immediately. The transport is paused while a part of a read is held back. Thus at most
    one read is held, and the end of the connection is noticed only after it.

    Parsing costs time per line of framing, not per byte. Therefore a connection is dense while its slices have on
    average more than one line of framing per `_FREE_BYTES_PER_LINE`, as tiny chunks and pipelined requests have.
    Dense connections take turns among themselves, so that other uploads never wait for them.
    """

    __slots__ = (
        "_dense_lines",
        "_dense_turns",
        "_held",
        "_held_from",
        "_ordinary_turns",
        "_parser_paused",
        "_recent_at",
        "_slice_bytes",
        "_slice_lines",
        "_waits_for_turn",
        "content_bytes",
        "recent_slices",
    )

    def __init__(self, *args: Any, ordinary_turns: ParsingTurns, dense_turns: ParsingTurns, **options: Any) -> None:
        super().__init__(*args, read_bufsize=READ_BUFFER_BYTES, **options)
        self._ordinary_turns = ordinary_turns
        self._dense_turns = dense_turns
        self._dense_lines = 0
        """Lines of framing beyond one per `_FREE_BYTES_PER_LINE`. At most `_DENSE_LINES`, which is dense."""
        self._slice_bytes = self._slice_lines = 0
        """Size of the last slice, which is not part of `_dense_lines` yet."""
        self.content_bytes = 0
        """Number of bytes of bodies parsed since the last slice began. `parse()` of a subclass counts them."""
        self.recent_slices = 0.0
        """Number of slices parsed, which halves every `_HALF_LIFE_S`."""
        self._recent_at = 0.0
        self._held = b""
        self._held_from = 0
        self._parser_paused = False
        self._waits_for_turn = False

    def parse(self, data: bytes) -> None:
        """Parse the next bytes of the connection."""
        super().data_received(data)

    def data_received(self, data: bytes) -> None:
        """Parse a read, or hold it back. aiohttp calls this with no bytes to continue its parser after a pause."""
        if not data or (
            not self._held
            and len(data) <= SLICE_BYTES
            and data.count(b"\n") <= SLICE_LINES
            and not (self.reading_paused or self.buffer_paused)
        ):
            self.parse(data)
            return
        self._held = self._held[self._held_from :] + data
        self._held_from = 0
        self.pause_transport_reading()
        self._wait_for_turn()

    def parse_slice(self) -> bool:
        """Parse the next slice of the held bytes. Return whether another slice can follow in the same turns."""
        turns = self._turns
        if self._can_parse():
            self._measure()
            start = self._held_from
            self._held_from = end = slice_end(self._held, start)
            piece = self._held[start:end]
            if end == len(self._held):
                self.drop_held()
            self._slice_bytes, self._slice_lines = len(piece), piece.count(b"\n")
            self.parse(piece)
        self._waits_for_turn = waits = self._can_parse() and self._turns is turns
        if not waits and not self.reading_paused and not self.buffer_paused:
            self.resume_transport_reading()
        return waits

    def decay_recent_slices(self, now: float) -> None:
        """Bring `recent_slices` up to date. `now` is the value of `time.monotonic()`."""
        self.recent_slices *= 0.5 ** ((now - self._recent_at) / _HALF_LIFE_S)
        self._recent_at = now

    @property
    def _turns(self) -> ParsingTurns:
        return self._dense_turns if self._dense_lines == _DENSE_LINES else self._ordinary_turns

    def _measure(self) -> None:
        """Count the last slice. aiohttp may have parsed the end of it later, after a pause."""
        framing_bytes = self._slice_bytes - self.content_bytes
        # The slice may have more lines. The others are lines of content.
        lines = min(self._slice_lines, max(0, framing_bytes) // _FRAMING_BYTES_PER_LINE)
        surplus = self._dense_lines + lines - self._slice_bytes // _FREE_BYTES_PER_LINE
        self._dense_lines = min(max(0, surplus), _DENSE_LINES)
        self.content_bytes = 0

    def drop_held(self) -> None:
        """Discard the held bytes."""
        self._held = b""
        self._held_from = 0

    def connection_lost(self, exc: BaseException | None) -> None:
        self.drop_held()
        super().connection_lost(exc)

    def pause_reading(self) -> None:
        self._parser_paused = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002 - aiohttp's signature
        """Resume reading. aiohttp calls this for every piece of a body, so it is cheap if nothing is paused."""
        if self._parser_paused:
            self._parser_paused = not resume_parser
            super().resume_reading(resume_parser)

    def _can_parse(self) -> bool:
        return bool(self._held) and not self.reading_paused and not self.buffer_paused

    def _wait_for_turn(self) -> None:
        if not self._waits_for_turn and self._can_parse():
            self._waits_for_turn = True
            self._turns.add(self)

    def resume_transport_reading(self) -> None:
        if self._held:
            self._wait_for_turn()
        else:
            super().resume_transport_reading()
