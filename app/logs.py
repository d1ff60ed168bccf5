"""Logs: one JSON object a line on standard output, what libraries say too."""

import asyncio
import atexit
import logging
import sys
from contextlib import suppress
from typing import BinaryIO

import structlog
from structlog.typing import EventDict

from streams.wire.codec import dumps
from streams.wire.ids import REQUEST_ID

log = structlog.get_logger()

_MESSAGE_CHARACTERS = 200
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(*, level: str) -> None:
    """Lines from `level` on; of libraries those from WARNING on."""
    threshold = _LEVELS.get(level.lower(), 20)
    structlog.configure(
        processors=[
            _named,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=lambda line, **_: dumps(line, default=str)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *_: _Lines(sys.stdout.buffer),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[_OneLine()])


class _Lines:
    """Writes lines; those of one turn of the event loop together."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._unwritten: list[bytes] = []
        atexit.register(self._write)  # where the loop ended before its next turn

    def msg(self, line: bytes) -> None:
        self._unwritten.append(line + b"\n")
        if len(self._unwritten) > 1:
            return
        try:
            asyncio.get_running_loop().call_soon(self._write)
        except RuntimeError:  # there is none
            self._write()

    debug = info = warning = error = critical = exception = msg

    def _write(self) -> None:
        lines, self._unwritten = self._unwritten, []
        if not lines:
            return
        with suppress(OSError, ValueError):  # nobody reads them, or the disk is full: who could be told
            self._file.write(b"".join(lines))
            self._file.flush()


def _named(_logger: object, _method: str, line: EventDict) -> EventDict:
    """Put the id of the request into its lines."""
    if (request_id := REQUEST_ID.get()) and "request_id" not in line:
        line["request_id"] = request_id
    return line


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
