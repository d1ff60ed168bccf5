"""The images of docs/guides/ai-tasks.md: its commands, in one shell, print what it shows; its config is valid."""

import re
from pathlib import Path

import pytest
import yaml

from storage.configs.kinds.images import Images
from tests.app.callers import working
from tests.code.source_files import ROOT
from tests.peers.curl import NEEDS_CURL, printed_by
from tests.running.servers import Server
from vendors.hosts.midjourney import IMAGE_TYPES

PAGE = (ROOT / "docs/guides/ai-tasks.md").read_text().partition("\n## Images\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PNG = b"\x89PNG\r\n\x1a\n"


@NEEDS_CURL
async def test_commands_of_the_page_make_the_images(server: Server, local_vendors: str, tmp_path: Path) -> None:
    _, session = await server.login()
    commands = "".join(text for language, text in BLOCKS if language == "sh")
    async with working(server.services):
        printed = await printed_by(commands, tmp_path, URL=server.url, SESSION=session)
    assert printed == "".join(text for language, text in BLOCKS if not language)
    assert [(tmp_path / name).read_bytes()[:8] for name in ("grid.png", "wider.png")] == [PNG, PNG]


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "yaml"])
def test_config_of_the_page_is_valid(text: str) -> None:
    assert Images.model_validate(yaml.safe_load(text)).quota is not None


def test_page_lists_each_type() -> None:
    assert re.findall(r"^\| `(\w+)` \| `", PAGE, re.MULTILINE) == ["type", *IMAGE_TYPES]
