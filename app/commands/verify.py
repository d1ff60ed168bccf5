"""The command `python -m app verify ledger`, which compares what is stored with the entries of the ledger."""

import argparse
import asyncio
import os
import sys
from contextlib import aclosing
from typing import Any

from app.observing.logs import STDERR
from app.observing.logs import configure as configure_logs
from app.settings import Settings
from storage.assets.differences import find_differences
from storage.postgres.database import open_database


def add_parser(subparsers: Any) -> None:
    """Add the command `verify`. `args.run(args)` runs it and returns the exit code."""
    verify = subparsers.add_parser("verify", help="check stored data")
    actions = verify.add_subparsers(dest="action", required=True)
    title = "rebuild assets, reservations and quotas from their entries and print those that differ"
    ledger = actions.add_parser("ledger", help=title, description=f"{title}. Exits with 1 if there are any.")
    ledger.set_defaults(run=run_ledger)


def run_ledger(_: argparse.Namespace) -> int:
    env = os.environ  # noqa: TID251 - an entry point
    configure_logs(level="error", output=STDERR)
    count = asyncio.run(_verify(Settings.from_env(env)))
    sys.stdout.write(f"{count} difference{'' if count == 1 else 's'}\n")
    return int(count > 0)


async def _verify(settings: Settings) -> int:
    count = 0
    async with (
        open_database(settings.database_url, max_size=1, pooled=settings.is_pooled) as database,
        aclosing(find_differences(database)) as differences,
    ):
        async for found in differences:
            count += 1
            sys.stdout.write(f"{found.app_id} {found.uid} {found.subject}: {found.problem}\n")
    return count
