"""The first board of docs/guides/leaderboards.md: its commands, in one shell, print what the page shows."""

import re
from pathlib import Path

import pytest
import yaml

from tests.app.leaderboards.boards import Boards
from tests.code.source_files import ROOT
from tests.peers.curl import NEEDS_CURL, clone_in, functions_of_guides, printed_by
from tests.running.servers import Server

PAGE = (ROOT / "docs/guides/leaderboards.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(PAGE)


@NEEDS_CURL
async def test_commands_of_the_page_print_what_it_shows(shared_server: Server, tmp_path: Path) -> None:
    clone = str(clone_in(tmp_path))
    _, session = await shared_server.login()
    commands = functions_of_guides() + "".join(text for language, text in BLOCKS if language == "sh")

    stored, *printed = (
        await printed_by(commands, tmp_path, URL=shared_server.url, SESSION=session, CLONE=clone)
    ).splitlines()

    assert "revision" in stored
    [shown] = [text.splitlines() for language, text in BLOCKS if not language]
    assert len(printed) == len(shown)
    for line, wanted in zip(printed, shown, strict=True):
        assert re.fullmatch(".+".join(map(re.escape, wanted.split("…"))), line), line


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "yaml"])
async def test_config_of_the_page_is_valid(shared_server: Server, text: str) -> None:
    boards = Boards(shared_server)
    await boards.configure(**yaml.safe_load(text))
    one = await boards.user()
    await boards.put(one, 1)


async def test_resets_of_the_page_are_valid(shared_server: Server) -> None:
    boards = Boards(shared_server)
    rows = re.findall(r"^\| `(\{every: .*?\})`", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for row in rows:
        await boards.configure(reset=yaml.safe_load(row.replace(", …", "")))


async def test_development_app_has_a_weekly_board_with_rewards(shared_server: Server) -> None:
    boards = Boards(shared_server)
    boards.name = "weekly"
    one = await boards.user()
    assert (await boards.put(one, 5))["order"] == "DESC"
    assert (await boards.read(one))["self_rank"] == 1
