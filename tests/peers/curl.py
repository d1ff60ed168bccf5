"""Runs the documented commands of a guide in a shell. They use curl."""

import asyncio
import shutil
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from tests.environment import moved_clock

NEEDS_CURL = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
_LONGEST_S = 120


async def printed_by(commands: str, folder: Path, **env: str) -> str:
    """Run commands in one shell in `folder`, with no other variables than `env`, and return what they print."""
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", **moved_clock(), **env}
    shell = await asyncio.create_subprocess_exec(
        "bash", "-euc", commands, cwd=folder, env=variables, stdout=PIPE, stderr=STDOUT
    )
    printed, _ = await asyncio.wait_for(shell.communicate(), _LONGEST_S)
    assert shell.returncode == 0, printed.decode()
    return printed.decode()
