"""The command `python -m app users make N`, which makes users with a session each, for load tests and trials."""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from app.observing.logs import STDERR
from app.observing.logs import configure as configure_logs
from app.settings import Settings
from app.stores import Stores, open_stores
from storage.accounts import logins
from storage.accounts.identities import Identity
from storage.accounts.logins import NewSession
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.auth import AUTH
from storage.errors import UnknownApp
from storage.operators.audit import COMMAND, Subject, record_change
from storage.tokens import digest, new_token
from streams.wire.ids import new_id

_MAX_USERS = 100_000
_BATCH_SIZE = 500
"""Number of users per transaction."""
_PLATFORM = "device"


def add_parser(subparsers: Any) -> None:
    """Add the command `users`. `args.run(args)` runs it and returns the exit code."""
    users = subparsers.add_parser("users", help="create users with sessions, for load tests")
    actions = users.add_subparsers(dest="action", required=True)
    make = actions.add_parser("make", help="create users and print a line `<uid> <token>` for each")
    make.add_argument("count", type=_count, metavar="N", help=f"number of users, at most {_MAX_USERS}")
    make.add_argument("--app", default="default", help="the app of the users (default: %(default)s)")
    make.add_argument("--out", type=Path, metavar="FILE", help="write to this file, readable only by its owner")
    make.set_defaults(run=run_make)


def _count(text: str) -> int:
    if not (text.isdecimal() and 0 < int(text) <= _MAX_USERS):
        raise argparse.ArgumentTypeError(f"must be from 1 to {_MAX_USERS}")
    return int(text)


def run_make(args: argparse.Namespace) -> int:
    env = os.environ  # noqa: TID251 - an entry point
    configure_logs(level="error", output=STDERR)
    if args.out is not None:
        _write(args.out, "")  # Fail before any user is created if the file cannot be written.
    users = asyncio.run(_make(Settings.from_env(env), args.app, args.count))
    lines = "".join(f"{uid} {token}\n" for uid, token in users)
    if args.out is None:
        sys.stdout.write(lines)
    else:
        _write(args.out, lines)
    return 0


def _write(path: Path, lines: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)  # The file may have existed with other permissions.
        file.write(lines)


async def _make(settings: Settings, app_id: str, count: int) -> list[tuple[str, str]]:
    async with open_stores(settings) as stores:
        if not stores.configs.exists(APPS, app_id):
            raise UnknownApp(app_id)
        return await make_users(stores, app_id, count)


async def make_users(stores: Stores, app_id: str, count: int) -> list[tuple[str, str]]:
    """Make `count` users of an app, each with a device identity. Return their uids and session tokens."""
    users = [(new_id(), new_token()) for _ in range(count)]
    absolute_s = stores.configs.singleton(AUTH, app_id).session_absolute_s
    for batch in _batches(users):
        now = stores.clock.now(app_id)
        async with stores.database.transaction() as conn:
            for uid, token in batch:
                identity = Identity(app_id, _PLATFORM, f"made-{uid}")
                session = NewSession(digest(token), now + timedelta(seconds=absolute_s))
                await logins.sign_up(conn, identity, session=session, uid=uid, now=now, proven=False)
            await record_change(
                conn, COMMAND, action="users.make", subject=Subject(app_id, "user", ""), after={"count": len(batch)}
            )
    return users


def _batches(users: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    remaining = iter(users)
    while batch := list(islice(remaining, _BATCH_SIZE)):
        yield batch
