"""The command `python -m app operators`, which manages the operators of the admin API."""

import argparse
import asyncio
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.observing.logs import STDERR
from app.observing.logs import configure as configure_logs
from app.settings import Settings
from storage.operators import operators
from storage.operators.audit import COMMAND, Origin
from storage.operators.operators import Operator, Role
from storage.postgres.database import Connection, open_database
from streams.wire.codec import rfc3339

_MAX_DAYS = 36_500


def add_parser(subparsers: Any) -> None:
    """Add the command `operators`. `args.run(args)` runs it and returns the exit code."""
    title = "add, list, change and remove the operators of the admin API"
    actions = subparsers.add_parser("operators", help=title, description=title).add_subparsers(
        dest="action", required=True
    )
    _add_action(actions, "list", "list the operators", _list)
    add = _add_action(actions, "add", "add an operator and print its token, which is not shown again", _add)
    change = _add_action(actions, "change", "change the role or the expiry of an operator", _change)
    rotate = _add_action(actions, "rotate", "replace the token of an operator and print the new one", _rotate)
    remove = _add_action(actions, "remove", "remove an operator", _remove)
    for parser in (add, change, rotate, remove):
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why, for the audit log")
    roles = [role.value for role in Role]
    add.add_argument("--role", choices=roles, required=True)
    add.add_argument("--days", type=_days, metavar="N", help="days until the token expires (default: never)")
    change.add_argument("--role", choices=roles, help="default: unchanged")
    expiry = change.add_mutually_exclusive_group()
    expiry.add_argument("--days", type=_days, metavar="N", help="days until the token expires (default: unchanged)")
    expiry.add_argument("--no-expiry", action="store_true", help="the token does not expire")
    rotate.add_argument("--days", type=_days, metavar="N", help="days until the token expires (default: unchanged)")


def _add_action(actions: Any, name: str, title: str, action: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=title, description=title)
    parser.set_defaults(run=run, perform=action)
    return parser


def _days(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 0 < int(text) <= _MAX_DAYS):
        raise argparse.ArgumentTypeError(f"must be from 1 to {_MAX_DAYS}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    env = os.environ  # noqa: TID251 - an entry point
    configure_logs(level="error", output=STDERR)
    asyncio.run(_run(args, Settings.from_env(env)))
    return 0


async def _run(args: argparse.Namespace, settings: Settings) -> None:
    """Run one action in a transaction and print its lines once it has committed. Only PostgreSQL is needed."""
    async with open_database(settings.database_url, max_size=1, pooled=settings.is_pooled) as database:
        async with database.transaction() as conn:
            lines = await args.perform(conn, args)
        sys.stdout.writelines(f"{line}\n" for line in lines)


async def _list(conn: Connection, _: argparse.Namespace) -> list[str]:
    return [_line(operator) for operator in await operators.all_operators(conn)]


async def _add(conn: Connection, args: argparse.Namespace) -> list[str]:
    _, token = await operators.add(
        conn, args.name, role=Role(args.role), expires_at=_expires_at(args.days), origin=_origin(args)
    )
    return [token]


async def _change(conn: Connection, args: argparse.Namespace) -> list[str]:
    current = await operators.lock(conn, args.name)
    keeps_expiry = args.days is None and not args.no_expiry
    changed = await operators.change(
        conn,
        current,
        role=Role(args.role or current.role),
        expires_at=current.expires_at if keeps_expiry else _expires_at(args.days),
        origin=_origin(args),
    )
    return [_line(changed)]


async def _rotate(conn: Connection, args: argparse.Namespace) -> list[str]:
    current = await operators.lock(conn, args.name)
    _, token = await operators.rotate(conn, current, expires_at=_expires_at(args.days), origin=_origin(args))
    return [token]


async def _remove(conn: Connection, args: argparse.Namespace) -> list[str]:
    await operators.remove(conn, await operators.lock(conn, args.name), origin=_origin(args))
    return []


def _origin(args: argparse.Namespace) -> Origin:
    return replace(COMMAND, reason=args.reason)


def _expires_at(days: int | None) -> datetime | None:
    return None if days is None else datetime.now(UTC) + timedelta(days=days)


def _line(operator: Operator) -> str:
    """Format an operator as one line, such as `ada  editor  expires never  used 2026-11-22T09:00:00Z`."""
    expires = "never" if operator.expires_at is None else rfc3339(operator.expires_at)
    used = "never" if operator.last_used_at is None else rfc3339(operator.last_used_at)
    verb = "expired" if operator.expired else "expires"
    return f"{operator.name}  {operator.role.value}  {verb} {expires}  used {used}"
