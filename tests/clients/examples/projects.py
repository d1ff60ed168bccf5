"""Copies of the example apps in empty folders, in which the commands of their READMEs are run unchanged.

They install the clients from a clone. There is no registry that has them, as for their readers.
"""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.process.children import ending_with_parent
from tests.clients.packages import clone_clients, without_network
from tests.waiting import until

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENDS_S = 170


@dataclass
class Command:
    """A command that runs."""

    process: asyncio.subprocess.Process
    output: bytes = b""

    async def says(self, text: str) -> None:
        await until(lambda: text in self.output.decode() or self.process.returncode is not None)
        assert text in self.output.decode(), self.output.decode()

    async def enter(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        await self.process.stdin.drain()

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)

    async def ends(self) -> str:
        """Wait for the end of a command that succeeds, and return its output."""
        async with asyncio.timeout(_ENDS_S):
            code = await self.process.wait()
        await until(lambda: self.process.stdout is None or self.process.stdout.at_eof())
        assert code == 0, self.output.decode()
        return self.output.decode()

    async def read(self) -> None:
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(1 << 16):
            self.output += data

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()


@dataclass(frozen=True)
class Project:
    folder: Path
    commands: list[str]
    """The blocks of the README, in their order."""
    env: dict[str, str]

    @asynccontextmanager
    async def running(self, command: str) -> AsyncIterator[Command]:
        """Run commands of the README during the block. It gets what `enter` writes, and ends with the block."""
        process = await asyncio.create_subprocess_exec(
            "bash", "-ec", command, cwd=self.folder, env=self.env,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            start_new_session=True, preexec_fn=ending_with_parent(signal.SIGKILL),
        )  # fmt: skip
        running = Command(process)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(running.read())
            try:
                yield running
            finally:
                await running.kill()

    async def run(self, command: str) -> str:
        async with self.running(command) as running:
            return await running.ends()


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the README's commands need of a clone of the repository."""
    return clone_clients(tmp_path_factory.mktemp("clone"))


def copied(name: str, folder: Path, clone: Path, **env: str) -> Project:
    """Return an example in a new folder outside of the clone."""
    project = folder / name
    ignored = shutil.ignore_patterns("__pycache__", ".venv", "node_modules")
    shutil.copytree(clone / "clients/examples" / name, project, ignore=ignored)
    commands = [block.strip() for block in _BLOCK.findall((project / "README.md").read_text())]
    own = {"CLONE": str(clone), "PYTHONUNBUFFERED": "1", **env}
    return Project(project, commands, without_network(folder / "home") | own)
