"""The section "Set up a deployment" of OPERATING.md: a new shell runs all its blocks, in order."""

from pathlib import Path

import pytest

from deploy.stores import Stores
from tests.deploy.documented_commands import (
    ROOT,
    follow,
    free_ports,
    placeholders_of,
    shell_in_clone,
    steps_of,
)
from tests.peers.curl import NEEDS_CURL
from vendors.local.engines import scripted
from vendors.protocols import ChatMessage
from vendors.sandbox.server import listening

# Nine processes start one after another, and the machine may be busy.
pytestmark = [pytest.mark.timeout(240), NEEDS_CURL]

PAGE = (ROOT / "OPERATING.md").read_text()
SECTION = PAGE.partition("## Set up a deployment\n")[2].partition("\n## ")[0]


async def test_every_block_of_the_readme_runs_unchanged(
    stores: Stores, empty_database: str, tmp_path: Path
) -> None:
    port, engines_port = free_ports(2)
    async with listening() as sandbox:
        values = {
            "<database-url>": empty_database,
            "<valkey-url>": f"{stores.redis_url}?db=7",
            "<port>": port,
            "<engines-port>": engines_port,
            "<vendor-url>": f"{sandbox.url}/openai/v1",
            "<vendor-key>": "sk-of-a-reader",
        }
        assert placeholders_of(SECTION) == values.keys()
        async with shell_in_clone(tmp_path) as shell:
            await shell.run("set -e")  # Each command must succeed, not only the last one of a block.
            printed = [await follow(step, shell, values) for step in steps_of(SECTION)]
        calls = [(entry.vendor, entry.stage) for entry in sandbox.sandbox.bill.since()]
    answer = scripted.answer([ChatMessage(role="user", content="Hello!")])
    assert f'"text":"{answer}"' in "".join(printed)
    assert calls == [("openai", "llm")]
