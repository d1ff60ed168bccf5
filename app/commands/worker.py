"""The command `python -m app worker`."""

import argparse
import asyncio
from typing import Any

from app.settings import Settings
from app.work.worker import run_until_signal


def add_parser(subparsers: Any) -> None:
    """Add the command `worker`. `args.run(args)` runs it and returns the exit code."""
    title = "run jobs until SIGTERM; any number of workers share the work"
    parser = subparsers.add_parser("worker", help=title, description=title)
    parser.set_defaults(run=run_worker)


def run_worker(_: argparse.Namespace) -> int:
    asyncio.run(run_until_signal(Settings.from_env()))
    return 0
