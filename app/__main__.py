"""The command line: `python -m app serve`, `migrate`, `config`, `users`, `sign` and `token`."""

import argparse
import sys
from collections.abc import Sequence

from app.commands import config, keys, serve, users


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="parley", description="A self-hosted server for voice and chat apps.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (serve, config, users, keys):
        module.add_parser(commands)
    args = parser.parse_args(arguments)
    code: int = args.run(args)
    return code


if __name__ == "__main__":
    sys.exit(main())
