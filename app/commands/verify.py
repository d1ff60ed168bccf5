"""The command `python -m app verify ledger`, which compares assets and withdrawals with their entries."""

import argparse
import asyncio
import os
import sys
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from app.logs import configure as configure_logs
from app.settings import Settings
from storage import withdrawals
from storage.assets import Asset
from storage.ledger import Difference, find_differences
from storage.postgres import open_database

_MAX_WITHDRAWALS = 10_000


def add_parser(subparsers: Any) -> None:
    """Add the command `verify`. `args.run(args)` runs it and returns the exit code."""
    verify = subparsers.add_parser("verify", help="check stored data")
    actions = verify.add_subparsers(dest="action", required=True)
    title = "rebuild assets and withdrawals from their entries and print those that differ"
    ledger = actions.add_parser("ledger", help=title, description=f"{title}. Exits with 1 if there are any.")
    ledger.set_defaults(run=run_ledger)


def run_ledger(_: argparse.Namespace) -> int:
    env = os.environ  # noqa: TID251 - an entry point
    configure_logs(level="error")
    count = asyncio.run(_verify(Settings.from_env(env)))
    sys.stdout.write(f"{count} difference{'' if count == 1 else 's'}\n")
    return int(count > 0)


async def _verify(settings: Settings) -> int:
    count = 0
    async with (
        open_database(settings.database_url, max_size=1) as database,
        aclosing(find_differences(database)) as differences,
    ):
        async for found in differences:
            count += 1
            sys.stdout.write(f"{_line(found)}\n")
        async with database.connection() as conn:
            differing = await withdrawals.find_differences(conn, limit=_MAX_WITHDRAWALS)
        for each in differing:
            should = each.expected or "in no state that its entries allow"
            sys.stdout.write(f"{each.app_id} {each.uid} withdrawal {each.withdrawal_id}: ")
            sys.stdout.write(f"status is {each.status}, should be {should}\n")
    return count + len(differing)


def _line(found: Difference) -> str:
    subject = f"{found.app_id} {found.uid} {found.name}"
    if found.subscription:
        subject = f"{subject} ({found.subscription})"
    if found.stored is None:
        return f"{subject}: is missing"
    if found.expected is None:
        return f"{subject}: has no entry"
    return f"{subject}: {', '.join(_fields(found.stored, found.expected))}"


def _fields(stored: Asset, expected: Asset) -> list[str]:
    right = asdict(expected)
    return [
        f"{name} is {value}, should be {right[name]}"
        for name, value in asdict(stored).items()
        if value != right[name]
    ]
