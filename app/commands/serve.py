"""The commands `python -m app serve` and `python -m app migrate`."""

import argparse
import asyncio
import gc
import sys
from typing import Any

import uvloop

from app.commands.exit_codes import REFUSED, exit_code
from app.environment import SettingsError
from app.process.control import Inherited
from app.process.parent import supervise_processes
from app.settings import Settings
from storage.postgres.migrate import MigrationRefused, migrate
from streams.wire.errors import ServiceError


def add_parser(subparsers: Any) -> None:
    """Add the commands `serve` and `migrate`. `args.run(args)` runs the chosen one and returns the exit code."""
    title = "run the server until SIGTERM, in PARLEY_PROCESSES processes"
    server = subparsers.add_parser("serve", help=title, description=title)
    server.add_argument("--one-of-several", metavar="INHERITED", help=argparse.SUPPRESS)
    server.set_defaults(run=run_serve)
    title = "apply the missing database migrations"
    migration = subparsers.add_parser("migrate", help=title, description=title)
    migration.set_defaults(run=run_migrate)


def run_serve(args: argparse.Namespace) -> int:
    settings = Settings.from_env()
    if args.one_of_several is not None:
        return _serve(settings, Inherited.from_argument(args.one_of_several))
    return asyncio.run(supervise_processes(settings)) if settings.processes > 1 else _serve(settings)


def run_migrate(args: argparse.Namespace) -> int:
    settings = Settings.from_env()
    try:
        applied = asyncio.run(migrate(settings.direct_url, variable=settings.direct_variable))
    except MigrationRefused as error:
        sys.stderr.write(f"parley: {error}\n")
        return REFUSED
    sys.stdout.write("".join(f"applied {name}\n" for name in applied) or "nothing to apply\n")
    return 0


def _serve(settings: Settings, inherited: Inherited | None = None) -> int:
    # Nearly all objects that are created at the start are kept, so a garbage collection would free almost nothing.
    # `serve` enables the collector.
    gc.disable()
    from app.main import serve  # noqa: PLC0415 - slow to import, and the parent of several processes does not need it

    try:
        uvloop.run(serve(settings, inherited))
    except (SettingsError, ServiceError, OSError) as error:
        if inherited is None:
            raise
        inherited.report_failure(str(error).removeprefix("parley: "))
        return exit_code(error)
    return 0
