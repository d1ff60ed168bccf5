"""The part of docs/guides/ai-tasks.md on predictions: its commands, in one shell, print what the page shows."""

import re
from pathlib import Path

import pytest

from tests.app.callers import working
from tests.code.source_files import ROOT
from tests.peers.curl import NEEDS_CURL, clone_in, functions_of_guides, printed_by
from tests.running.servers import Server

PAGE = (ROOT / "docs/guides/ai-tasks.md").read_text()
PART = PAGE[PAGE.index("## Predictions") : PAGE.index("## Quotas")]
BLOCKS = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL).findall(PART)


@NEEDS_CURL
@pytest.mark.usefixtures("local_vendors")
async def test_commands_of_the_page_print_what_it_shows(server: Server, tmp_path: Path) -> None:
    clone = str(clone_in(tmp_path))
    _, session = await server.login()
    commands = functions_of_guides() + "".join(text for language, text in BLOCKS if language == "sh")

    async with working(server.services):
        printed = (await printed_by(commands, tmp_path, URL=server.url, SESSION=session, CLONE=clone)).splitlines()

    shown = [text.rstrip("\n").replace("http://127.0.0.1:8080", server.url) for lang, text in BLOCKS if not lang]
    *results, account, strategy = printed
    assert "revision" in account
    assert "revision" in strategy
    assert len(results) == len(shown) == 3
    for line, wanted in zip(results, shown, strict=True):
        assert re.fullmatch(".+".join(map(re.escape, wanted.split("…"))) + ".*", line), line
