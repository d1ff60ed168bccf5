"""Logs: one JSON object a line on standard output, what libraries say too."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.typing import EventDict

from app.log_writer import LogWriter
from streams.wire.codec import LOG_LINE, dumps
from streams.wire.ids import REQUEST_ID

log = structlog.get_logger()

_MESSAGE_CHARACTERS = 200
_LINE_BYTES = 4096
"""Of a longer line every field is cut: what a client sends may be in it."""
_FIELD_CHARACTERS = 256
_STACK_CHARACTERS = 3000
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(*, level: str) -> None:
    """Lines from `level` on; of libraries those from WARNING on."""
    threshold = _LEVELS.get(level.lower(), 20)
    writer = LogWriter(_dropped_line)
    structlog.configure(
        processors=[_rendered],
        wrapper_class=_logger(threshold),
        logger_factory=lambda *_: writer,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[_OneLine()])


def _logger(threshold: int) -> type[structlog.typing.FilteringBoundLogger]:
    """A logger of structlog's, where all between a method's call and the processors is one step."""
    methods = {name: _method(name) for name, number in _LEVELS.items() if number >= threshold}
    return type("Logger", (structlog.make_filtering_bound_logger(threshold),), methods)


def _method(level: str) -> Callable[..., None]:
    def tell(self: Any, event: str, **fields: Any) -> None:
        line: Any = self._context | fields
        line["event"] = event
        try:
            for processor in self._processors:
                line = processor(self._logger, level, line)
        except structlog.DropEvent:
            return
        self._logger.msg(line)

    return tell


def _rendered(_logger: object, level: str, line: EventDict) -> bytes:
    """The line as it is written: with the request's id, the level, the time, and the stack where one is given."""
    if "request_id" not in line and (request_id := REQUEST_ID.get()):
        line["request_id"] = request_id
    line["level"] = level
    line["timestamp"] = datetime.now(UTC)
    if "exc_info" in line:
        line = structlog.processors.format_exc_info(_logger, level, line)
    raw = _dumped(line)
    return raw if len(raw) <= _LINE_BYTES else _dumped({name: _cut(name, value) for name, value in line.items()})


def _dropped_line(count: int) -> bytes:
    return _rendered(None, "warning", {"event": "log.lines_dropped", "count": count})


def _dumped(line: EventDict) -> bytes:
    try:
        return dumps(line, default=str, option=LOG_LINE)
    except TypeError:  # JSON has no half a character, and no number of any size
        return dumps({name: ascii(value) for name, value in line.items()}, option=LOG_LINE)


def _cut(name: str, value: Any) -> Any:
    """Of a line that is too long: at most so many characters of a field, of a stack its beginning and its end."""
    if isinstance(value, int | float | datetime | None):
        return value
    text = value if isinstance(value, str) else str(value)
    if name == "exception" and len(text) > 2 * _STACK_CHARACTERS:
        return f"{text[:_STACK_CHARACTERS]}\n…\n{text[-_STACK_CHARACTERS:]}"
    return text if name == "exception" else text[:_FIELD_CHARACTERS]


class LineRate:
    """Admits so many log lines a second, and logs as `event` how many were left out. For the event loop alone."""

    def __init__(self, per_s: int, event: str) -> None:
        self._per_s = per_s
        self._event = event
        self._admitted = self._left_out = 0
        self._counted_by: asyncio.AbstractEventLoop | None = None
        """The loop whose timer ends the second that began with the first line; none: there was no line."""

    def admits(self) -> bool:
        """Whether a line may be written."""
        loop = asyncio.get_running_loop()
        if self._counted_by is not loop:
            self._counted_by, self._admitted = loop, 0
            loop.call_later(1, self._end_second)
        if self._admitted < self._per_s:
            self._admitted += 1
            return True
        self._left_out += 1
        return False

    def _end_second(self) -> None:
        self._counted_by = None
        left_out, self._left_out = self._left_out, 0
        if left_out:
            log.warning(self._event, count=left_out)


class _OneLine(logging.Handler):
    """A library's words as one line of ours. Stack and text of an exception stay out: they may quote a client."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - words that do not fit their places end no request
            text = str(record.msg)
        kind = record.exc_info[0] if record.exc_info else None
        log.log(
            record.levelno,
            "library",
            logger=record.name,
            message=text.partition("\n")[0][:_MESSAGE_CHARACTERS],
            exception=kind and kind.__name__,
        )
