"""The command `python -m app worker`."""

import argparse
import asyncio
import sys
from typing import Any

from app.settings import Settings
from app.worker import work
from streams.wire.errors import ServiceError


def add_parser(subparsers: Any) -> None:
    """Add the command `worker`. `args.run(args)` runs it and returns the exit code."""
    title = "run jobs until SIGTERM; any number of workers share the work"
    parser = subparsers.add_parser("worker", help=title, description=title)
    parser.set_defaults(run=run_worker)


def run_worker(_: argparse.Namespace) -> int:
    settings = Settings.from_env()
    try:
        asyncio.run(work(settings))
    except (ServiceError, OSError) as error:
        sys.stderr.write(f"parley: {error}\n")
        return 1
    return 0
