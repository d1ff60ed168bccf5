"""The command `python -m app doctor`, which checks a deployment from inside and outside."""

import argparse
import asyncio
import os
import sys
from typing import Any

from app.commands.exit_codes import DOUBTFUL, FAILED
from app.doctor.checks import CHECKS, examine, store
from app.doctor.findings import as_text
from app.doctor.surroundings import Surroundings
from app.observing.logs import STDERR
from app.observing.logs import configure as configure_logs
from app.settings import Settings
from storage.operators.doctor_reports import Report, State
from streams.wire.codec import dumps


def add_parser(subparsers: Any) -> None:
    """Add the command `doctor`. `args.run(args)` runs it and returns the exit code."""
    title = "check the stores, vendors, mail servers and proxies of a deployment"
    parser = subparsers.add_parser(
        "doctor", help=title, description=f"{title}. Exits with 1 if something is broken."
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 if something is doubtful and nothing is broken"
    )
    parser.add_argument(
        "--only", action="append", choices=list(CHECKS), default=[], metavar="PART", help=", ".join(CHECKS)
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    env = os.environ  # noqa: TID251 - an entry point
    configure_logs(level="error", output=STDERR)
    report = asyncio.run(_run(Surroundings(Settings.from_env(env)), args.only))
    sys.stdout.write(f"{dumps(report.model_dump(mode='json')).decode()}\n" if args.json else as_text(report))
    match report.state:
        case State.BROKEN:
            return FAILED
        case State.DOUBTFUL if args.strict:
            return DOUBTFUL
        case _:
            return 0


async def _run(here: Surroundings, only: list[str]) -> Report:
    """Check everything, or only the named parts. The report of everything is kept for the console."""
    report = await examine(here, only=only)
    if not only:
        await store(here, report)
    return report
