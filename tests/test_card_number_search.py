"""A run of the tests fails if the number of a card is stored or logged in any of them."""

import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code.source_files import ROOT

LEAKS = """
import structlog
from tests.deploy.commands import command
async def test_log():
    structlog.get_logger().info("paid", card="4242 4242-4242 4242")
async def test_command():
    async with command("timeit", "-n1", "-r1", "print('4000000000000002')") as running:
        await running.end()
async def test_database(services):
    async with services.database.connection() as conn:
        await conn.execute("create table receipts as select '4242424242424242'::bytea as body")
async def test_other_numbers(services, tmp_path):
    structlog.get_logger().info("paid", card="424242 in test 42424242")
    (tmp_path / "server.log").write_text("4242")
    async with services.database.connection() as conn:
        await conn.execute("create table receipts as select '4242'::bytea as body")
"""
LEAK_IN_A_FILE = """
async def test_leak(tmp_path):
    (tmp_path / "server.log").write_text("5555555555554444")
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that this run does not search."""
    with tempfile.TemporaryDirectory(prefix="parley-") as name:
        yield Path(name)


async def run(folder: Path, name: str, test: str, *options: str) -> tuple[int | None, str]:
    """Run a test in a process of its own, with the fixtures of all tests. Return the exit code and the output."""
    path = folder / f"test_{name}.py"
    path.write_text(test)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:randomly", "--noconftest"),
        *("-c", str(ROOT / "pyproject.toml"), f"--basetemp={folder / 'temp'}", *options, str(path)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def test_each_test_fails_that_leaves_the_number_of_a_card_and_no_other(folder: Path) -> None:
    code, output = await run(folder, "leaks", LEAKS)
    assert code == 1, output
    for what, name in {
        "the number of a card is in the log": "test_log",
        "it has printed a card's number": "test_command",
        "numbers of cards are stored in": "test_database",
    }.items():
        assert what in output
        assert re.search(rf"^(?:FAILED|ERROR) \S*::{name}\b", output, re.MULTILINE), output
    assert re.search(r"\b2 passed\b", output), output
    assert "numbers of cards are in " not in output


async def test_a_run_of_several_workers_fails_if_a_log_file_has_the_number_of_a_card(folder: Path) -> None:
    code, output = await run(folder, "file", LEAK_IN_A_FILE, "-n", "1")
    assert code == 1, output
    assert "numbers of cards are in" in output
