"""Writes log lines in a separate thread, so that an output that nobody reads blocks no other thread."""

import atexit
import os
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue

from prometheus_client import Counter

DROPPED = Counter("parley_log_lines_dropped", "Log lines that standard output did not accept")

STDOUT, STDERR = 1, 2
"""Descriptors of the outputs of a process."""
_MAX_LINES = 5_000
"""Waiting lines: usually less than 2 MB, and 20 MB if each has the greatest length."""
_LINES_PER_ROUND = 64
_GATHER_S = 0.01
"""How long the thread lets lines gather once it wakes, because waking it costs the event loop time."""
_FLUSH_S = 2
"""How long the process waits at its end for lines to be written."""


class LogWriter:
    """Writes whole lines in order. If too many wait, it drops new ones until all waiting lines are written.

    `dropped_line` renders the line that replaces the given number of dropped ones.
    """

    def __init__(self, dropped_line: Callable[[int], bytes], *, output: int = STDOUT) -> None:
        self._dropped_line = dropped_line
        self._output = output
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        """None: the process ends."""
        self._dropped = 0
        self._reported = 0
        """How many of the dropped lines have been reported. Lines are dropped until it equals `_dropped`."""
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def msg(self, line: bytes) -> None:
        """Write `line` soon. Any thread may call it."""
        if self._thread is None:
            self._start()
        if self._dropped != self._reported or self._waiting.qsize() >= _MAX_LINES:
            self._drop()
        else:
            self._waiting.put(line)

    critical = error = warning = info = debug = msg

    def _drop(self) -> None:
        first = self._dropped == self._reported
        self._dropped += 1
        DROPPED.inc()
        if first:
            self._waiting.put(b"")  # The thread may have taken all lines meanwhile, and must wake to report.

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="log writer", daemon=True)
                thread.start()
                atexit.register(self._end, thread)
                self._thread = thread

    def _end(self, thread: threading.Thread) -> None:
        self._waiting.put(None)
        thread.join(_FLUSH_S)

    def _run(self) -> None:
        ended = False
        while not ended:
            lines = [self._waiting.get()]
            if self._waiting.empty():
                time.sleep(_GATHER_S)  # noqa: TID251 - no event loop runs in this thread
            lines += [self._waiting.get() for _ in range(min(self._waiting.qsize(), _LINES_PER_ROUND - 1))]
            ended = None in lines
            for piece in _pieces(filter(None, lines)):
                _write(self._output, piece)
            if self._waiting.empty():
                self._report()

    def _report(self) -> None:
        while count := self._dropped - self._reported:
            _write(self._output, self._dropped_line(count))
            self._reported += count


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines into pieces that a pipe keeps whole, even if several processes write to it."""
    joined = b""
    for line in lines:
        if joined and len(joined) + len(line) > select.PIPE_BUF:
            yield joined
            joined = b""
        joined += line
    yield joined


def _write(output: int, piece: bytes) -> None:
    """Block until `piece` is written. It is lost if nobody will ever read it, or the disk is full."""
    while piece:
        try:
            piece = piece[os.write(output, piece) :]
        except BlockingIOError:  # Another process that has this file open has made it non-blocking.
            select.select([], [output], [])
        except OSError:
            DROPPED.inc(piece.count(b"\n"))
            return
