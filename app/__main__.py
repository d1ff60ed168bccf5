"""The command line: `python -m app serve`, `worker`, `migrate`, `config`, `users` and others (`--help`)."""

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

_MODULES = {
    "serve": "app.commands.serve",
    "worker": "app.commands.worker",
    "migrate": "app.commands.serve",
    "config": "app.commands.config",
    "users": "app.commands.users",
    "operators": "app.commands.operators",
    "verify": "app.commands.verify",
    "doctor": "app.commands.doctor",
    "bucket": "app.commands.bucket",
    "keys": "app.commands.keys",
    "sign": "app.commands.keys",
    "token": "app.commands.keys",
}
"""By command. Only the given command's module is imported, because `serve` and `config` take a second each."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["serve"]:
        # By default SIGHUP ends the process, and an operator may reload a server that is still starting.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Imported here, because they are slow to import and SIGHUP must be ignored before.
    from app.commands.exit_codes import REFUSED, exit_code  # noqa: PLC0415
    from app.environment import SettingsError  # noqa: PLC0415
    from app.version import version  # noqa: PLC0415
    from streams.wire.errors import ServiceError  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        prog="parley",
        description="A self-hosted server for voice and chat apps.",
        epilog="Environment variables configure all commands: see docs/reference/settings.md.",
    )
    parser.add_argument("--version", action="version", version=f"parley {version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    named = _MODULES.get(given[0]) if given else None
    modules = [named] if named else [] if given[:1] == ["--version"] else dict.fromkeys(_MODULES.values())
    for module in modules:
        import_module(module).add_parser(commands)
    args = parser.parse_args(given)
    try:
        code: int = args.run(args)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return REFUSED
    except OSError as error:
        cause = error.strerror.lower() if error.strerror else str(error)
        sys.stderr.write(f"parley: {f'{error.filename}: {cause}' if error.filename else cause}\n")
        return REFUSED
    except ServiceError as error:
        sys.stderr.write(f"parley: {error}\n")
        return exit_code(error)
    return code


if __name__ == "__main__":
    sys.exit(main())
