"""The commands `python -m app config export DIR` and `python -m app config import DIR`."""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.commands.config_files import export_folder, import_folder
from app.environment import SettingsError
from app.observing.logs import STDERR
from app.observing.logs import configure as configure_logs
from app.settings import Settings
from app.stores import Stores, open_stores
from storage.configs.edits import Change
from storage.configs.kinds.apps import APPS
from storage.configs.master_key import is_ahead
from storage.configs.rows import ConfigKey
from storage.configs.rules import Fault
from storage.configs.store import ConfigStore
from storage.errors import UnknownApp
from storage.processes import processes
from storage.processes.heartbeats import VOID_AFTER_S
from streams.wire.errors import InvalidParameter

__all__ = ["add_parser", "import_folder"]


def add_parser(subparsers: Any) -> None:
    """Add the command `config`. `args.run(args)` runs it and returns the exit code."""
    config = subparsers.add_parser("config", help="export and import named configs as YAML files")
    actions = config.add_subparsers(dest="action", required=True)
    for action, title in (("export", "write the configs to a folder"), ("import", "read configs from a folder")):
        parser = actions.add_parser(action, help=title)
        parser.add_argument(
            "folder", type=Path, metavar="DIR", help="folder of files named <app>/<kind>/<name>.yaml"
        )
        parser.add_argument("--app", help="only the configs of this app")
        parser.set_defaults(run=run)
        if action == "import":
            parser.add_argument("--dry-run", action="store_true", help="show what would change")
            parser.add_argument("--strict", action="store_true", help="refuse configs with warnings")
            parser.add_argument(
                "--author", default="import", help="author of the new revisions (default: %(default)s)"
            )


def run(args: argparse.Namespace) -> int:
    env = os.environ  # noqa: TID251 - an entry point; {env: NAME} in files refers to it
    configure_logs(level="error", output=STDERR)  # The changes are printed below.
    asyncio.run(_run(args, Settings.from_env(env), env))
    return 0


async def _run(args: argparse.Namespace, settings: Settings, env: Mapping[str, str]) -> None:
    async with open_stores(settings) as stores:
        if args.action == "export":
            await _export(args, stores.configs)
        else:
            await _refuse_new_key(stores)
            await _import(args, stores.configs, env)


async def _export(args: argparse.Namespace, configs: ConfigStore) -> None:
    if args.app is not None and not configs.exists(APPS, args.app):
        raise UnknownApp(args.app)
    exported = await export_folder(configs, args.folder, app_id=args.app)
    sys.stderr.writelines(f"{path} belongs to no config\n" for path in exported.unknown_files)
    sys.stderr.writelines(
        f"{'/'.join(key)} is skipped: app {key.app_id} does not exist\n" for key in exported.skipped
    )
    sys.stderr.writelines(warning_line(key, warning) for key, warning in exported.warnings)


async def _refuse_new_key(stores: Stores) -> None:
    """Raise `SettingsError` if running processes may lack the key that would encrypt secrets."""
    async with stores.database.connection() as conn:
        if await is_ahead(conn, stores.keyring) and await processes.all_alive(conn, void_after_s=VOID_AFTER_S):
            raise SettingsError(
                "parley: PARLEY_MASTER_KEY begins with a key with which no running process has started, so they"
                " could not read what it encrypts: restart them with it first (docs/operating/secrets.md)"
            )


async def _import(args: argparse.Namespace, configs: ConfigStore, env: Mapping[str, str]) -> None:
    changes = await import_folder(
        configs,
        args.folder,
        author=args.author,
        env=env,
        only=lambda key: args.app in {None, key.app_id},
        strict=args.strict,
        dry_run=args.dry_run,
    )
    if args.app is not None and not changes:
        raise InvalidParameter(f"{args.folder} has no file of app {args.app}")
    sys.stdout.writelines(f"{line(change)}\n" for change in changes)
    sys.stderr.writelines(warning_line(change.key, warning) for change in changes for warning in change.warnings)
    if args.dry_run:
        sys.stdout.write("nothing was written\n")


def warning_line(key: ConfigKey, warning: Fault) -> str:
    return f"warning: {'/'.join(key)}: {warning}\n"


def line(change: Change) -> str:
    """Format a change as one line, such as `changed    default/speech/local: voice, waits.first_output_s`."""
    fields = f": {', '.join(change.fields)}" if change.fields else ""
    return f"{change.outcome:<10} {'/'.join(change.key)}{fields}"
