"""Logging: one JSON object per line on standard output, including messages from libraries."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.typing import EventDict

from app.environment import LOG_LEVELS
from app.observing.log_writer import STDERR, STDOUT, LogWriter
from streams.wire.codec import LOG_LINE, dumps
from streams.wire.ids import REQUEST_ID

__all__ = ["STDERR", "LineRate", "configure"]

log = structlog.get_logger()

_MESSAGE_CHARACTERS = 200
_LINE_BYTES = 4096
"""The fields of longer lines are truncated, because they may hold data that a client has sent."""
_FIELD_CHARACTERS = 256
_STACK_CHARACTERS = 3000
_POOLS = ("asyncpg", "psycopg")


def configure(*, level: str, process: str = "", output: int = STDOUT) -> None:
    """Log lines of at least `level`, and messages from libraries of at least WARNING.

    `process` is the id of this process, which every line has. Commands write them to STDERR, because their results
    are on standard output. The pools of PostgreSQL's clients log each attempt to connect while it is unavailable;
    whoever uses them logs that once.
    """
    threshold = LOG_LEVELS[level]
    render = _renderer(process)
    writer = LogWriter(
        lambda count: render(None, "warning", {"event": "log.lines_dropped", "count": count}), output=output
    )
    for name in _POOLS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    structlog.configure(
        processors=[render],
        wrapper_class=_logger(threshold),
        logger_factory=lambda *_: writer,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[_OneLine()])


def _logger(threshold: int) -> type[structlog.typing.FilteringBoundLogger]:
    """Return a structlog logger class whose methods call the processors directly, which is faster."""
    methods = {name: _method(name) for name, number in LOG_LEVELS.items() if number >= threshold}
    return type("Logger", (structlog.make_filtering_bound_logger(threshold),), methods)


def _method(level: str) -> Callable[..., None]:
    def log_event(self: Any, event: str, **fields: Any) -> None:
        line: Any = self._context | fields
        line["event"] = event
        try:
            for processor in self._processors:
                line = processor(self._logger, level, line)
        except structlog.DropEvent:
            return
        self._logger.msg(line)

    return log_event


def _renderer(process: str) -> Callable[[object, str, EventDict], bytes]:
    """Return the function that renders the lines of `process`."""

    def render(logger: object, level: str, line: EventDict) -> bytes:
        """Return the line as JSON, with the request id, level, process and time, and the stack of `exc_info`."""
        if "request_id" not in line and (request_id := REQUEST_ID.get()):
            line["request_id"] = request_id
        line["level"] = level
        if process:
            line["process"] = process
        line["timestamp"] = datetime.now(UTC)
        if "exc_info" in line:
            line = structlog.processors.format_exc_info(logger, level, line)
        raw = _dump(line)
        if len(raw) <= _LINE_BYTES:
            return raw
        return _dump({name: _truncate(name, value) for name, value in line.items()})

    return render


def _dump(line: EventDict) -> bytes:
    try:
        return dumps(line, default=str, option=LOG_LINE)
    except TypeError:  # The line holds a lone surrogate or an integer of more than 64 bits.
        return dumps({name: ascii(value) for name, value in line.items()}, option=LOG_LINE)


def _truncate(name: str, value: Any) -> Any:
    """Truncate a field of a line that is too long. The beginning and the end of a stack are kept."""
    if isinstance(value, int | float | datetime | None):
        return value
    text = value if isinstance(value, str) else str(value)
    if name == "exception" and len(text) > 2 * _STACK_CHARACTERS:
        return f"{text[:_STACK_CHARACTERS]}\n…\n{text[-_STACK_CHARACTERS:]}"
    return text if name == "exception" else text[:_FIELD_CHARACTERS]


class LineRate:
    """Limits log lines to `per_s` per second, and logs the number of suppressed ones as `event`.

    May only be used in the event loop.
    """

    def __init__(self, per_s: int, event: str) -> None:
        self._per_s = per_s
        self._event = event
        self._admitted = self._suppressed = 0
        self._counted_by: asyncio.AbstractEventLoop | None = None
        """The loop that runs a timer for the current second, or `None` if no line was written in it yet."""

    def admits(self) -> bool:
        """Return whether a line may be written, and count it."""
        loop = asyncio.get_running_loop()
        if self._counted_by is not loop:
            self._counted_by, self._admitted = loop, 0
            loop.call_later(1, self._end_second)
        if self._admitted < self._per_s:
            self._admitted += 1
            return True
        self._suppressed += 1
        return False

    def _end_second(self) -> None:
        self._counted_by = None
        suppressed, self._suppressed = self._suppressed, 0
        if suppressed:
            log.warning(self._event, count=suppressed)


class _OneLine(logging.Handler):
    """Logs a message from a library as one line.

    The stack and message of an exception are not logged, because they may contain data from a client.
    """

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - a message with wrong format arguments must not fail a request
            text = str(record.msg)
        kind = record.exc_info[0] if record.exc_info else None
        log.log(
            record.levelno,
            "library",
            logger=record.name,
            message=text.partition("\n")[0][:_MESSAGE_CHARACTERS],
            exception=kind and kind.__name__,
        )
