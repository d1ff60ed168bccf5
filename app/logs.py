"""Logs: one JSON object a line on standard output."""

import logging
import sys

import structlog

from streams.wire.codec import dumps

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(*, level: str) -> None:
    """Lines from `level` on. What libraries say in their own way goes to standard error from WARNING on."""
    threshold = _LEVELS.get(level.lower(), 20)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=lambda line, **_: dumps(line, default=str)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.BytesLoggerFactory(),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=max(threshold, logging.WARNING), stream=sys.stderr, format="%(name)s %(message)s")
