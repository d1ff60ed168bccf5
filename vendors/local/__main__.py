"""`python -m vendors.local`: the process of the local engines.

Prints one line of JSON when it is ready, with its URL and the state of each engine. SIGTERM and SIGINT end it.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys

import structlog
import uvloop

from streams.wire.codec import dumps
from vendors.local.endpoints.server import listening
from vendors.local.engines.engines import open_engines


def main() -> None:
    options = _options()
    os.environ["HF_HUB_OFFLINE"] = "1"  # noqa: TID251 - a process entry point; read when whisper is imported
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(lambda event, **_: dumps(event, default=str).decode()),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    uvloop.run(_serve(options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m vendors.local", description="Local engines with OpenAI's API.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0, the default, selects a free one")
    parser.add_argument(
        "--pace-ms",
        type=int,
        default=20,
        help="milliseconds between two words of `scripted` (default: %(default)s)",
    )
    return parser.parse_args()


async def _serve(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with (
        open_engines(pace_ms=options.pace_ms) as engines,
        listening(engines, host=options.host, port=options.port) as url,
    ):
        line = dumps({"listening": url, "engines": engines.faults()}).decode()
        print(line, flush=True)
        await stop.wait()


if __name__ == "__main__":
    main()
