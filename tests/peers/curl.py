"""Runs the documented commands of a guide in a shell. They use curl."""

import asyncio
import re
import shutil
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from tests.code.source_files import ROOT
from tests.environment import moved_clock
from tests.running.servers import ADMIN_TOKEN

NEEDS_CURL = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
_LONGEST_S = 120
_FUNCTION = re.compile(r"^\w+\(\) \{.*?\}\n", re.MULTILINE | re.DOTALL)


def functions_of(text: str) -> str:
    """Return the functions of the shell that a text defines."""
    return "".join(_FUNCTION.findall(text))


def functions_of_guides() -> str:
    """Return the functions that README.md defines for all guides."""
    return functions_of((ROOT / "README.md").read_text())


def clone_in(folder: Path) -> Path:
    """Make the folder that the guides call `$CLONE`, with the operator's token that `make run` writes there."""
    clone = folder / "clone"
    (clone / ".parley").mkdir(parents=True)
    (clone / ".parley" / "admin-token").write_text(ADMIN_TOKEN)
    return clone


async def printed_by(commands: str, folder: Path, **env: str) -> str:
    """Run commands in one shell in `folder`, with no other variables than `env`, and return what they print."""
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", **moved_clock(), **env}
    shell = await asyncio.create_subprocess_exec(
        "bash", "-euc", commands, cwd=folder, env=variables, stdout=PIPE, stderr=STDOUT
    )
    printed, _ = await asyncio.wait_for(shell.communicate(), _LONGEST_S)
    assert shell.returncode == 0, printed.decode()
    return printed.decode()
