"""The pages of docs/operating for a first deployment: a new shell runs all their blocks, in order."""

import os
from pathlib import Path

import pytest

from deploy.stores import Stores
from tests.deploy.documented_commands import (
    ROOT,
    follow,
    new_shell,
    placeholders_of,
    shell_in_clone,
    steps_of,
)
from tests.peers.curl import NEEDS_CURL
from tests.running.ports import free_ports
from vendors.local.engines import scripted
from vendors.protocols import ChatMessage
from vendors.sandbox.server import listening

# More than a dozen processes start, and the machine may be busy. A block that hangs ends earlier, with a report.
pytestmark = [pytest.mark.timeout(900), NEEDS_CURL]

PAGES = ROOT / "docs" / "operating"
INSTALL = (PAGES / "install.md").read_text()
BACK_UP = (PAGES / "backup-and-restore.md").read_text().partition("\n## Restore\n")[0]
LATER = [(PAGES / page).read_text() for page in ("configure.md", "upgrade.md", "processes.md")]
STEPS = [step for page in (INSTALL, BACK_UP, *LATER) for step in steps_of(page)]


async def test_every_block_of_a_first_deployment_runs_unchanged(
    stores: Stores, empty_database: str, tmp_path: Path
) -> None:
    port, engines_port = map(str, free_ports(2))
    async with listening() as sandbox:
        values = {
            "<database-url>": empty_database,
            "<valkey-url>": f"{stores.redis_url}?db=7",
            "<port>": port,
            "<engines-port>": engines_port,
            "<vendor-url>": f"{sandbox.url}/openai/v1",
            "<vendor-key>": "sk-of-a-reader",
        }
        assert placeholders_of(INSTALL) == values.keys()
        async with shell_in_clone(tmp_path) as shell:
            await shell.run("set -e")  # Each command must succeed, not only the last one of a block.
            printed = [await follow(step, shell, values) for step in STEPS]
        calls = [(entry.vendor, entry.stage) for entry in sandbox.sandbox.bill.since()]
    answer = scripted.answer([ChatMessage(role="user", content="Hello!")])
    assert f'"text":"{answer}"' in "".join(printed)
    assert calls == [("openai", "llm")]


async def test_a_block_that_does_not_end_is_reported_with_the_logs_of_its_processes(tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    folder.mkdir()
    async with new_shell(folder, os.defpath) as shell:
        await shell.run("echo 'the port is in use' > server.log")
        shell.block_timeout_s = 0.3
        with pytest.raises(
            AssertionError, match=r"did not end within 0\.3 s\nsleep 600\n\n*server\.log:\nthe port is"
        ):
            await shell.run("sleep 600")
